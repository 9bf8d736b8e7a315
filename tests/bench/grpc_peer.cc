// SPDX-License-Identifier: Apache-2.0
// The peer of grpc_bench.py: libgrpc++ as a server that answers with nothing, and as a client that
// keeps a number of unary calls under way on one channel.
//   grpc_peer server KEY CERT          prints its port
//   grpc_peer client PORT CA N SIZE PARALLEL   prints CPU seconds and calls that succeeded
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

static std::string read_file(const char *path)
{
	std::ostringstream text;
	text << std::ifstream(path).rdbuf();
	return text.str();
}

// One call of the server, from request to answer.
struct Served {
	grpc::GenericServerContext context;
	grpc::GenericServerAsyncReaderWriter stream{&context};
	grpc::ByteBuffer message;
	int step = 0;
};

static void serve(grpc::AsyncGenericService *service, grpc::ServerCompletionQueue *queue)
{
	auto wait = [&] {
		auto *call = new Served;
		service->RequestCall(&call->context, &call->stream, queue, queue, call);
	};
	wait();
	void *tag;
	bool is_fine;
	while (queue->Next(&tag, &is_fine)) {
		auto *call = static_cast<Served *>(tag);
		switch (call->step++) {
		case 0:
			wait();
			call->stream.Read(&call->message, call);
			break;
		case 1: {
			grpc::Slice empty("", 0);
			call->stream.WriteAndFinish(grpc::ByteBuffer(&empty, 1), grpc::WriteOptions(),
						    grpc::Status::OK, call);
			break;
		}
		default:
			delete call;
		}
	}
}

static int server(const char *key, const char *certificate)
{
	grpc::SslServerCredentialsOptions options;
	options.pem_key_cert_pairs.push_back({read_file(key), read_file(certificate)});
	grpc::AsyncGenericService service;
	grpc::ServerBuilder builder;
	int port = 0;
	builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(options), &port);
	builder.RegisterAsyncGenericService(&service);
	auto queue = builder.AddCompletionQueue();
	auto running = builder.BuildAndStart();
	std::printf("%d\n", port);
	std::fflush(stdout);
	serve(&service, queue.get());
	return 0;
}

struct Call {
	grpc::ClientContext context;
	std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
	grpc::ByteBuffer answer;
	grpc::Status status;
};

static double cpu_seconds()
{
	rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static int client(const char *port, const char *ca, long n, size_t size, long parallel)
{
	grpc::SslCredentialsOptions options;
	options.pem_root_certs = read_file(ca);
	auto channel = grpc::CreateChannel(std::string("localhost:") + port,
					   grpc::SslCredentials(options));
	grpc::GenericStub stub(channel);
	grpc::CompletionQueue queue;
	std::string payload(size, 'x');
	grpc::Slice slice(payload);
	grpc::ByteBuffer message(&slice, 1);
	long started = 0, ended = 0, fine = 0;
	auto start = [&] {
		auto *call = new Call;
		call->reader = stub.PrepareUnaryCall(&call->context, "/test.Echo/Unary", message, &queue);
		call->reader->StartCall();
		call->reader->Finish(&call->answer, &call->status, call);
		started++;
	};
	while (started < parallel && started < n)
		start();
	void *tag;
	bool is_fine;
	while (ended < n && queue.Next(&tag, &is_fine)) {
		auto *call = static_cast<Call *>(tag);
		fine += call->status.ok();
		delete call;
		ended++;
		if (started < n)
			start();
	}
	std::printf("%.6f %ld\n", cpu_seconds(), fine);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && std::strcmp(argv[1], "server") == 0)
		return server(argv[2], argv[3]);
	if (argc == 7 && std::strcmp(argv[1], "client") == 0)
		return client(argv[2], argv[3], std::atol(argv[4]), std::strtoul(argv[5], nullptr, 10),
			      std::atol(argv[6]));
	return 2;
}
