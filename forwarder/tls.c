/* SPDX-License-Identifier: Apache-2.0 */
/* TLS over OpenSSL, which is used here only. */
#include "forwarder/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/buf.h"
#include "base/mem.h"
#include "forwarder/endpoint.h"
#include "forwarder/text_escape.h"

enum {
	TLS_NUMBER = 301, /* in the table of explained errors */
	FIRST_BYTES = 48,
	NAME_BYTES = 128,
	TEXT_BYTES = 512,
	N_FILES = 4,
	MAX_NAMES_SHOWN = 3,
	MAX_PENDING_BYTES = 4 << 20,
};

/* Tells a file from its successor. */
struct file_identity {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec modified;
};

struct tls_context {
	BIO_METHOD *method; /* of links' ends */
	const struct tls_config *config;
	char *host;
	char *server;
	char *protocol;
	SSL_CTX *ssl; /* NULL before the first connection */
	struct file_identity files[N_FILES];
	SSL_SESSION *session; /* the newest ticket */
};

struct tls_link {
	struct tls_context *context;
	SSL *ssl;
	/* From the peer: borrowed for the time of the call that brought them. */
	const uint8_t *in;
	size_t n_in;
	struct buf out;	  /* for the peer */
	tls_sink_fn sink; /* NULL = all goes to out */
	void *sink_context;
	size_t n_out_taken;
	bool is_open;
	bool is_at_end;
	uint8_t first[FIRST_BYTES];
	size_t n_first;
	char verdict[TEXT_BYTES]; /* why the certificate was refused; "" = it was not */
};

/* The first of OpenSSL's queued reasons; empties the queue. */
static const char *ssl_reason(void)
{
	unsigned long code = ERR_get_error();
	const char *reason = code ? ERR_reason_error_string(code) : NULL;
	ERR_clear_error();
	return reason ? reason : "unknown reason";
}

/* The context */

static void read_identities(const struct tls_config *config, struct file_identity *out)
{
	const char *paths[N_FILES] = {config->ca_file, config->ca_path, config->cert_file,
				      config->key_file};
	memset(out, 0, N_FILES * sizeof(*out));
	for (size_t i = 0; i < N_FILES; i++) {
		struct stat st;
		if (!paths[i] || stat(paths[i], &st) != 0)
			continue;
		out[i].device = st.st_dev;
		out[i].inode = st.st_ino;
		out[i].size = st.st_size;
		out[i].modified = st.st_mtim;
	}
}

static bool are_identities_equal(const struct file_identity *a, const struct file_identity *b)
{
	for (size_t i = 0; i < N_FILES; i++)
		if (a[i].device != b[i].device || a[i].inode != b[i].inode ||
		    a[i].size != b[i].size || a[i].modified.tv_sec != b[i].modified.tv_sec ||
		    a[i].modified.tv_nsec != b[i].modified.tv_nsec)
			return false;
	return true;
}

static struct error *load_trust(SSL_CTX *ssl, const struct tls_config *config)
{
	if (config->skip_verify)
		return NULL;
	if (!config->ca_file && !config->ca_path) {
		if (SSL_CTX_set_default_verify_paths(ssl) != 1)
			return error_new(ERROR_UNAVAILABLE, "the system's certificates: %s",
					 ssl_reason());
		return NULL;
	}
	if (config->ca_file && SSL_CTX_load_verify_file(ssl, config->ca_file) != 1)
		return error_new(ERROR_UNAVAILABLE, "CA file %s: %s", config->ca_file,
				 ssl_reason());
	struct stat st;
	if (config->ca_path && (stat(config->ca_path, &st) != 0 || !S_ISDIR(st.st_mode)))
		return error_new(ERROR_UNAVAILABLE, "CA path %s: not a folder", config->ca_path);
	if (config->ca_path && SSL_CTX_load_verify_dir(ssl, config->ca_path) != 1)
		return error_new(ERROR_UNAVAILABLE, "CA path %s: %s", config->ca_path,
				 ssl_reason());
	return NULL;
}

/* A key that asks for a password is not one for a service: no prompt. */
static int no_password(char *out, int size, int is_writing, void *context)
{
	(void)out;
	(void)size;
	(void)is_writing;
	(void)context;
	return -1;
}

static struct error *load_identity(SSL_CTX *ssl, const struct tls_config *config)
{
	if (!config->cert_file)
		return NULL;
	SSL_CTX_set_default_passwd_cb(ssl, no_password);
	if (SSL_CTX_use_certificate_chain_file(ssl, config->cert_file) != 1)
		return error_new(ERROR_UNAVAILABLE, "client certificate %s: %s", config->cert_file,
				 ssl_reason());
	if (SSL_CTX_use_PrivateKey_file(ssl, config->key_file, SSL_FILETYPE_PEM) != 1)
		return error_new(ERROR_UNAVAILABLE, "client key %s: %s", config->key_file,
				 ssl_reason());
	if (SSL_CTX_check_private_key(ssl) != 1)
		return error_new(ERROR_UNAVAILABLE, "client key %s does not fit certificate %s",
				 config->key_file, config->cert_file);
	return NULL;
}

/* A ticket for the next connection. Returning 1 keeps it. */
static int on_session(SSL *ssl, SSL_SESSION *session)
{
	struct tls_link *link = SSL_get_app_data(ssl);
	SSL_SESSION_free(link->context->session);
	link->context->session = session;
	return 1;
}

static struct error *make_ssl(const struct tls_config *config, SSL_CTX **out)
{
	SSL_CTX *ssl = SSL_CTX_new(TLS_client_method());
	if (!ssl)
		return error_new(ERROR_UNAVAILABLE, "OpenSSL: %s", ssl_reason());
	bool is_13 = config->min_version && strcmp(config->min_version, "1.3") == 0;
	SSL_CTX_set_min_proto_version(ssl, is_13 ? TLS1_3_VERSION : TLS1_2_VERSION);
	SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_session_cache_mode(ssl,
				       SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
	SSL_CTX_sess_set_new_cb(ssl, on_session);
	struct error *err = NULL;
	/* HTTP/2 forbids most suites of TLS 1.2 (RFC 9113, appendix A). */
	if (SSL_CTX_set_cipher_list(ssl, "ECDHE+AESGCM:ECDHE+CHACHA20:DHE+AESGCM") != 1)
		err = error_new(ERROR_UNAVAILABLE, "OpenSSL: %s", ssl_reason());
	if (!err)
		err = load_trust(ssl, config);
	if (!err)
		err = load_identity(ssl, config);
	if (err) {
		SSL_CTX_free(ssl);
		return err;
	}
	*out = ssl;
	return NULL;
}

/* Reads the files when there is a reason to. */
static struct error *refresh(struct tls_context *context, struct error **warning_out)
{
	struct file_identity files[N_FILES];
	read_identities(context->config, files);
	if (context->ssl && are_identities_equal(files, context->files))
		return NULL;
	SSL_CTX *ssl = NULL;
	struct error *err = make_ssl(context->config, &ssl);
	if (err && !context->ssl)
		return err;
	memcpy(context->files, files, sizeof(files));
	if (err) {
		*warning_out = err;
		return NULL;
	}
	SSL_CTX_free(context->ssl);
	context->ssl = ssl;
	SSL_SESSION_free(context->session);
	context->session = NULL;
	return NULL;
}

struct error *tls_context_new(const struct tls_config *config, const char *host, const char *server,
			      const char *protocol, struct tls_context **out)
{
	const char *min = config->min_version;
	if (min && strcmp(min, "1.2") != 0 && strcmp(min, "1.3") != 0)
		return error_new(ERROR_USAGE, "tls: min_version \"%s\" is neither 1.2 nor 1.3",
				 min);
	if (!config->cert_file != !config->key_file)
		return error_new(ERROR_USAGE, "tls: cert_file and key_file go together");
	struct tls_context *context = mem_zalloc(1, sizeof(*context));
	context->config = config;
	context->host = mem_copy_string(config->server_name ? config->server_name : host);
	context->server = mem_copy_string(server);
	context->protocol = mem_copy_string(protocol);
	size_t n = strlen(context->host);
	if (n > 1 && context->host[n - 1] == '.') /* the root of DNS is in no certificate */
		context->host[n - 1] = 0;
	char *zone = strchr(context->host, '%');
	if (zone)
		*zone = 0;
	*out = context;
	return NULL;
}

void tls_context_free(struct tls_context *context)
{
	if (!context)
		return;
	SSL_SESSION_free(context->session);
	SSL_CTX_free(context->ssl);
	BIO_meth_free(context->method);
	mem_free(context->host);
	mem_free(context->server);
	mem_free(context->protocol);
	mem_free(context);
}

/* Why a certificate is refused */

static void put_name(X509_NAME *name, char *out, size_t size)
{
	static const int kinds[] = {NID_commonName, NID_organizationalUnitName,
				    NID_organizationName};
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		int at = X509_NAME_get_index_by_NID(name, kinds[i], -1);
		if (at < 0)
			continue;
		unsigned char *utf8 = NULL;
		int n = ASN1_STRING_to_UTF8(
			&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
		if (n > 0)
			text_escape(utf8, (size_t)n, out, size);
		OPENSSL_free(utf8);
		if (n > 0)
			return;
	}
	snprintf(out, size, "without a name");
}

static void put_time(const ASN1_TIME *time, char *out, size_t size)
{
	struct tm tm = {0};
	if (ASN1_TIME_to_tm(time, &tm) != 1 || strftime(out, size, "%Y-%m-%dT%H:%MZ", &tm) == 0)
		snprintf(out, size, "at an unreadable time");
}

/* "a.example", "b.example" and 3 more */
static void put_alternative_names(X509 *certificate, char *out, size_t size)
{
	GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
	int n = names ? sk_GENERAL_NAME_num(names) : 0;
	size_t used = 0;
	int n_shown = 0;
	out[0] = 0;
	for (int i = 0; i < n && n_shown < MAX_NAMES_SHOWN; i++) {
		const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
		char shown[64];
		if (name->type == GEN_DNS) {
			text_escape(ASN1_STRING_get0_data(name->d.dNSName),
				    (size_t)ASN1_STRING_length(name->d.dNSName), shown,
				    sizeof(shown));
		} else if (name->type == GEN_IPADD && ASN1_STRING_length(name->d.iPAddress) == 4) {
			const uint8_t *ip = ASN1_STRING_get0_data(name->d.iPAddress);
			snprintf(shown, sizeof(shown), "%u.%u.%u.%u", ip[0], ip[1], ip[2], ip[3]);
		} else {
			continue;
		}
		used += (size_t)snprintf(out + used, size - used, "%s\"%s\"", n_shown ? ", " : "",
					 shown);
		n_shown++;
	}
	if (n_shown == 0) {
		char name[NAME_BYTES];
		put_name(X509_get_subject_name(certificate), name, sizeof(name));
		snprintf(out, size, "\"%s\"", name);
	} else if (n > n_shown) {
		snprintf(out + used, size - used, " and %d more", n - n_shown);
	}
	GENERAL_NAMES_free(names);
}

static void put_verdict(struct tls_link *link, X509 *certificate, int reason, int depth)
{
	const char *server = link->context->server;
	char *out = link->verdict;
	char name[NAME_BYTES];
	char names[TEXT_BYTES / 2];
	char of[NAME_BYTES + 32] = "";
	if (depth > 0) {
		put_name(X509_get_subject_name(certificate), name, sizeof(name));
		snprintf(of, sizeof(of), "issuer \"%s\" of the ", name);
	}
	switch (reason) {
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
		put_name(X509_get_issuer_name(certificate), name, sizeof(name));
		snprintf(out, TEXT_BYTES, "certificate of %s is not trusted: issuer \"%s\" unknown",
			 server, name);
		break;
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
		put_name(X509_get_subject_name(certificate), name, sizeof(name));
		snprintf(out, TEXT_BYTES,
			 "certificate of %s is not trusted: \"%s\" has signed it itself", server,
			 name);
		break;
	case X509_V_ERR_CERT_HAS_EXPIRED:
		put_time(X509_get0_notAfter(certificate), name, sizeof(name));
		snprintf(out, TEXT_BYTES, "%scertificate of %s expired %s", of, server, name);
		break;
	case X509_V_ERR_CERT_NOT_YET_VALID:
		put_time(X509_get0_notBefore(certificate), name, sizeof(name));
		snprintf(out, TEXT_BYTES,
			 "%scertificate of %s is not valid before %s; is this host's clock right?",
			 of, server, name);
		break;
	case X509_V_ERR_HOSTNAME_MISMATCH:
	case X509_V_ERR_IP_ADDRESS_MISMATCH:
		put_alternative_names(certificate, names, sizeof(names));
		snprintf(out, TEXT_BYTES, "certificate of %s is for %s, not for \"%s\"", server,
			 names, link->context->host);
		break;
	default:
		snprintf(out, TEXT_BYTES, "%scertificate of %s is not trusted: %s", of, server,
			 X509_verify_cert_error_string(reason));
	}
}

static int on_verify(int is_fine, X509_STORE_CTX *store)
{
	const SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
	struct tls_link *link = SSL_get_app_data(ssl);
	X509 *certificate = X509_STORE_CTX_get_current_cert(store);
	if (!is_fine && !link->verdict[0] && certificate)
		put_verdict(link, certificate, X509_STORE_CTX_get_error(store),
			    X509_STORE_CTX_get_error_depth(store));
	return is_fine;
}

/* Why the peer hung up */

static const char *alert_text(const struct tls_link *link, int reason)
{
	bool has_certificate = link->context->config->cert_file != NULL;
	switch (reason) {
	case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
		return "asks for a client certificate, and none is configured";
	case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
		return has_certificate ? "found no common ground for TLS, or refused our client "
					 "certificate"
				       : "found no common ground for TLS, or asks for a client "
					 "certificate";
	case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
		return "does not trust the issuer of our client certificate";
	case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
		return "says that our client certificate has expired";
	case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
		return "says that our client certificate was revoked";
	case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
	case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
	case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
	case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
		return "refused our client certificate";
	case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
		return "offers no version of TLS that is allowed here";
	case SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL:
		return "does not offer HTTP/2 (ALPN \"h2\")";
	case SSL_R_TLSV1_UNRECOGNIZED_NAME:
		return "does not know the host name that it was asked for";
	default:
		return NULL;
	}
}

/* The last call failed for good. */
static struct error *describe_failure(struct tls_link *link)
{
	const char *server = link->context->server;
	if (link->verdict[0]) {
		ERR_clear_error();
		return error_new(ERROR_UNAVAILABLE, "%s", link->verdict);
	}
	unsigned long code = ERR_peek_last_error();
	int reason = ERR_GET_REASON(code);
	if (!link->is_open && reason == SSL_R_WRONG_VERSION_NUMBER) {
		char shown[FIRST_BYTES + 8];
		size_t n_line = 0;
		while (n_line < link->n_first && link->first[n_line] != '\r' &&
		       link->first[n_line] != '\n')
			n_line++;
		text_escape(link->first, n_line, shown, sizeof(shown));
		ERR_clear_error();
		return error_new(ERROR_UNAVAILABLE, "%s does not speak TLS; it answered \"%s\"",
				 server, shown);
	}
	const char *text = alert_text(link, reason);
	if (text) {
		ERR_clear_error();
		return error_new(ERROR_UNAVAILABLE, "%s %s", server, text);
	}
	return error_new(ERROR_UNAVAILABLE, "TLS with %s failed: %s", server, ssl_reason());
}

/* Links */

/* OpenSSL's ends of a link: what it reads and writes. */

static int end_read(BIO *end, char *out, size_t size, size_t *n_out)
{
	struct tls_link *link = BIO_get_data(end);
	BIO_clear_retry_flags(end);
	size_t n = size < link->n_in ? size : link->n_in;
	if (n == 0) {
		BIO_set_retry_read(end);
		return 0;
	}
	memcpy(out, link->in, n);
	link->in += n;
	link->n_in -= n;
	*n_out = n;
	return 1;
}

static int end_write(BIO *end, const char *bytes, size_t n, size_t *n_out)
{
	struct tls_link *link = BIO_get_data(end);
	BIO_clear_retry_flags(end);
	size_t taken = link->sink && link->out.size == 0
			       ? link->sink(link->sink_context, (const uint8_t *)bytes, n)
			       : 0;
	struct error *err = buf_append(&link->out, bytes + taken, n - taken);
	if (err) {
		error_free(err);
		return 0;
	}
	*n_out = n;
	return 1;
}

static long end_control(BIO *end, int command, long number, void *pointer)
{
	(void)end;
	(void)number;
	(void)pointer;
	return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *make_method(void)
{
	BIO_METHOD *method =
		BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "perfpipe link");
	if (method && BIO_meth_set_read_ex(method, end_read) == 1 &&
	    BIO_meth_set_write_ex(method, end_write) == 1 &&
	    BIO_meth_set_ctrl(method, end_control) == 1)
		return method;
	BIO_meth_free(method);
	return NULL;
}

static struct error *prepare(struct tls_link *link)
{
	const struct tls_context *context = link->context;
	SSL *ssl = link->ssl;
	size_t n = strlen(context->protocol);
	unsigned char alpn[16];
	if (n == 0 || n >= sizeof(alpn))
		return error_new(ERROR_USAGE, "ALPN \"%s\"", context->protocol);
	alpn[0] = (unsigned char)n;
	memcpy(alpn + 1, context->protocol, n);
	if (SSL_set_alpn_protos(ssl, alpn, (unsigned)n + 1) != 0)
		return error_new(ERROR_UNAVAILABLE, "OpenSSL: %s", ssl_reason());
	bool is_address = endpoint_host_is_address(context->host);
	if (!is_address && SSL_set_tlsext_host_name(ssl, context->host) != 1)
		return error_new(ERROR_USAGE, "server name \"%s\": %s", context->host,
				 ssl_reason());
	if (context->config->skip_verify) {
		SSL_set_verify(ssl, SSL_VERIFY_NONE, NULL);
	} else {
		X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
		X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
		int is_fine = is_address ? X509_VERIFY_PARAM_set1_ip_asc(param, context->host)
					 : X509_VERIFY_PARAM_set1_host(param, context->host, 0);
		if (is_fine != 1)
			return error_new(ERROR_USAGE, "server name \"%s\": %s", context->host,
					 ssl_reason());
		SSL_set_verify(ssl, SSL_VERIFY_PEER, on_verify);
	}
	if (context->session)
		SSL_set_session(ssl, context->session);
	SSL_set_connect_state(ssl);
	return NULL;
}

struct error *tls_open(struct tls_context *context, struct error **warning_out,
		       struct tls_link **out)
{
	*warning_out = NULL;
	struct error *err = refresh(context, warning_out);
	if (err)
		return error_number(err, TLS_NUMBER);
	if (!context->method)
		context->method = make_method();
	struct tls_link *link = mem_zalloc(1, sizeof(*link));
	link->context = context;
	buf_init(&link->out, MAX_PENDING_BYTES);
	link->ssl = SSL_new(context->ssl);
	BIO *end = context->method ? BIO_new(context->method) : NULL;
	if (!link->ssl || !end) {
		BIO_free(end);
		tls_close(link);
		return error_number(error_new(ERROR_UNAVAILABLE, "OpenSSL: %s", ssl_reason()),
				    TLS_NUMBER);
	}
	BIO_set_data(end, link);
	BIO_set_init(end, 1);
	SSL_set_bio(link->ssl, end, end);
	SSL_set_app_data(link->ssl, link);
	err = prepare(link);
	if (err) {
		tls_close(link);
		return error_number(err, TLS_NUMBER);
	}
	*out = link;
	return NULL;
}

void tls_close(struct tls_link *link)
{
	if (!link)
		return;
	SSL_free(link->ssl);
	buf_fini(&link->out);
	mem_free(link);
}

struct error *tls_receive(struct tls_link *link, const uint8_t *bytes, size_t n)
{
	size_t room = sizeof(link->first) - link->n_first;
	size_t take = n < room ? n : room;
	memcpy(link->first + link->n_first, bytes, take);
	link->n_first += take;
	if (link->n_in > 0)
		return error_number(error_new(ERROR_BAD_DATA, "TLS with %s: bytes were left over",
					      link->context->server),
				    TLS_NUMBER);
	link->in = bytes;
	link->n_in = n;
	return NULL;
}

struct error *tls_shake_hands(struct tls_link *link, bool *is_done_out)
{
	*is_done_out = link->is_open;
	if (link->is_open)
		return NULL;
	ERR_clear_error();
	int result = SSL_do_handshake(link->ssl);
	if (result != 1) {
		int kind = SSL_get_error(link->ssl, result);
		if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE)
			return NULL;
		return error_number(describe_failure(link), TLS_NUMBER);
	}
	const unsigned char *protocol;
	unsigned n;
	SSL_get0_alpn_selected(link->ssl, &protocol, &n);
	bool is_h2 = strcmp(link->context->protocol, "h2") == 0;
	/* Servers of HTTP/1.1 need not know of ALPN. */
	bool is_agreed = n == 0 ? !is_h2
				: n == strlen(link->context->protocol) &&
					  memcmp(protocol, link->context->protocol, n) == 0;
	if (!is_agreed)
		return error_number(error_new(ERROR_UNAVAILABLE,
					      "%s does not offer %s over TLS (ALPN \"%s\")",
					      link->context->server, is_h2 ? "HTTP/2" : "HTTP/1.1",
					      link->context->protocol),
				    TLS_NUMBER);
	link->is_open = *is_done_out = true;
	return NULL;
}

struct error *tls_read(struct tls_link *link, uint8_t *out, size_t size, size_t *n_out)
{
	*n_out = 0;
	/* To be told by OpenSSL that there is nothing costs more than what there is. */
	if (link->n_in == 0 && SSL_has_pending(link->ssl) == 0)
		return NULL;
	ERR_clear_error();
	int result = SSL_read_ex(link->ssl, out, size, n_out);
	if (result == 1)
		return NULL;
	*n_out = 0;
	switch (SSL_get_error(link->ssl, result)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return NULL;
	case SSL_ERROR_ZERO_RETURN:
		link->is_at_end = true;
		return NULL;
	default:
		return error_number(describe_failure(link), TLS_NUMBER);
	}
}

bool tls_is_at_end(const struct tls_link *link)
{
	return link->is_at_end;
}

struct error *tls_end_of_stream(struct tls_link *link)
{
	return error_number(error_new(ERROR_UNAVAILABLE,
				      "%s closed the connection during the TLS handshake%s",
				      link->context->server,
				      link->n_first ? "" : "; does it speak TLS on this port?"),
			    TLS_NUMBER);
}

struct error *tls_write(struct tls_link *link, const uint8_t *bytes, size_t n)
{
	while (n > 0) {
		size_t written = 0;
		ERR_clear_error();
		if (SSL_write_ex(link->ssl, bytes, n, &written) != 1)
			return error_number(describe_failure(link), TLS_NUMBER);
		bytes += written;
		n -= written;
	}
	return NULL;
}

void tls_say_goodbye(struct tls_link *link)
{
	if (!link->is_open)
		return;
	ERR_clear_error();
	SSL_shutdown(link->ssl);
	ERR_clear_error();
}

void tls_set_sink(struct tls_link *link, tls_sink_fn sink, void *context)
{
	link->sink = sink;
	link->sink_context = context;
}

size_t tls_pending(struct tls_link *link, const uint8_t **bytes_out)
{
	*bytes_out = link->out.data + link->n_out_taken;
	return link->out.size - link->n_out_taken;
}

void tls_take_pending(struct tls_link *link, size_t n)
{
	link->n_out_taken += n;
	if (link->n_out_taken < link->out.size)
		return;
	buf_clear(&link->out);
	link->n_out_taken = 0;
}

const char *tls_version(const struct tls_link *link)
{
	return SSL_get_version(link->ssl);
}

bool tls_is_resumed(const struct tls_link *link)
{
	return SSL_session_reused(link->ssl) == 1;
}
