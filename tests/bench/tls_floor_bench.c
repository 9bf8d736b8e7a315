/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What TLS itself costs: bytes written with SSL_write to a server that throws them away.
 * tls_floor_bench KEY CERT N SIZE: prints the writer's CPU seconds, without the handshake.
 */
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static double cpu_seconds(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static int sink(int listener, const char *key, const char *certificate)
{
	static char bytes[65536];
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());
	int fd = accept(listener, NULL, NULL);
	if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1 ||
	    SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
		return 1;
	SSL *ssl = SSL_new(context);
	SSL_set_fd(ssl, fd);
	if (SSL_accept(ssl) != 1)
		return 1;
	while (SSL_read(ssl, bytes, sizeof(bytes)) > 0)
		;
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	long n = strtol(argv[3], NULL, 10);
	size_t size = strtoul(argv[4], NULL, 10);
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n_address = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&address, n_address) != 0 ||
	    listen(listener, 1) != 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &n_address) != 0)
		return 1;
	pid_t child = fork();
	if (child == 0)
		_exit(sink(listener, argv[1], argv[2]));
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	SSL *ssl = SSL_new(context);
	SSL_set_fd(ssl, fd);
	if (connect(fd, (struct sockaddr *)&address, n_address) != 0 || SSL_connect(ssl) != 1)
		return 1;
	char *bytes = malloc(size);
	memset(bytes, 'x', size);
	double begun = cpu_seconds();
	for (long i = 0; i < n; i++)
		if (SSL_write(ssl, bytes, (int)size) != (int)size)
			return 1;
	printf("%.6f\n", cpu_seconds() - begun);
	SSL_shutdown(ssl);
	close(fd);
	waitpid(child, NULL, 0);
	free(bytes);
	return 0;
}
