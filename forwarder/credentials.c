/* SPDX-License-Identifier: Apache-2.0 */
/* Request headers out of configuration and secret files. */
#include "forwarder/credentials.h"

#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "forwarder/base64.h"

enum {
	MAX_SECRET_BYTES = 16 << 10, /* servers take 8 to 16 KiB of headers */
	MAX_HEADERS = 64,
	MAX_NAME_BYTES = 256,
	MAX_VALUE_BYTES = 8 << 10,
};

void credentials_wipe_string(char *secret)
{
	if (secret)
		explicit_bzero(secret, strlen(secret));
	mem_free(secret);
}

static void wipe_buf(struct buf *buf)
{
	if (buf->data)
		explicit_bzero(buf->data, buf->capacity);
	buf_fini(buf);
}

char *credentials_basic(const char *user, const char *password)
{
	char *plain = mem_format("%s:%s", user, password);
	size_t n = strlen(plain);
	static const char scheme[] = "Basic ";
	char *value = mem_alloc(sizeof(scheme) + base64_encoded_size(n));
	memcpy(value, scheme, sizeof(scheme) - 1);
	base64_encode(plain, n, value + sizeof(scheme) - 1);
	value[sizeof(scheme) - 1 + base64_encoded_size(n)] = 0;
	credentials_wipe_string(plain);
	return value;
}

/* Headers whose values are taken for secrets, whoever invented them. */
static bool is_secret_name(const char *name)
{
	static const char *const parts[] = {"authorization", "cookie",	"token",    "secret",
					    "apikey",	     "api-key", "password", "access-key"};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strcasestr(name, parts[i]))
			return true;
	return false;
}

static struct error *check_name(const char *name)
{
	static const char *const ours[] = {"content-type",	"te",
					   "user-agent",	"host",
					   "connection",	"content-length",
					   "transfer-encoding", "keep-alive",
					   "upgrade",		"proxy-connection"};
	size_t n = strlen(name);
	if (n == 0 || n > MAX_NAME_BYTES)
		return error_new(ERROR_USAGE, "a header's name has 1 to %d bytes", MAX_NAME_BYTES);
	for (size_t i = 0; i < n; i++) {
		char c = name[i];
		bool is_fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			       (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
		if (!is_fine)
			return error_new(ERROR_USAGE,
					 "header name \"%s\" has characters other than "
					 "letters, digits and -_.",
					 name);
	}
	if (strncasecmp(name, "grpc-", 5) == 0)
		return error_new(ERROR_USAGE, "header \"%s\": names with grpc- are reserved", name);
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (strcasecmp(name, ours[i]) == 0)
			return error_new(ERROR_USAGE, "header \"%s\" is set by the protocol", name);
	return NULL;
}

/* Does not show the value. */
static struct error *check_value(const char *what, const char *value, size_t n)
{
	if (n > MAX_VALUE_BYTES)
		return error_new(ERROR_USAGE, "%s: %zu bytes are more than %d", what, n,
				 MAX_VALUE_BYTES);
	for (size_t i = 0; i < n; i++)
		if (value[i] < 0x20 || value[i] > 0x7e)
			return error_new(ERROR_USAGE,
					 "%s: byte %zu of the value is not printable "
					 "ASCII",
					 what, i + 1);
	if (n > 0 && (value[0] == ' ' || value[n - 1] == ' '))
		return error_new(ERROR_USAGE, "%s: the value begins or ends with a blank", what);
	return NULL;
}

/* Binary metadata: users give base64, as grpcurl takes it. */
static bool is_binary_name(const char *name)
{
	size_t n = strlen(name);
	return n >= 4 && strcasecmp(name + n - 4, "-bin") == 0;
}

static struct error *check_binary(const char *name, const char *value)
{
	size_t n = strlen(value);
	size_t n_decoded;
	uint8_t *decoded = mem_alloc(n / 4 * 3 + 3);
	bool is_fine = base64_decode(value, n, decoded, &n_decoded);
	explicit_bzero(decoded, n / 4 * 3 + 3);
	mem_free(decoded);
	if (is_fine)
		return NULL;
	return error_new(ERROR_USAGE, "header %s: the value of a -bin header is base64", name);
}

static bool has_authorization_header(const struct remote_config *config)
{
	for (size_t i = 0; i < config->n_headers; i++)
		if (strcasecmp(config->headers[i].key, "authorization") == 0)
			return true;
	return false;
}

static const char *find_secret(const struct remote_config *config)
{
	if (config->bearer_token || config->bearer_token_file)
		return "a bearer token";
	if (config->username)
		return "a password";
	for (size_t i = 0; i < config->n_headers; i++)
		if (is_secret_name(config->headers[i].key))
			return config->headers[i].key;
	return NULL;
}

struct error *credentials_check(const struct remote_config *config, const struct endpoint *endpoint)
{
	if (config->n_headers > MAX_HEADERS)
		return error_new(ERROR_USAGE, "%zu headers are more than %d", config->n_headers,
				 MAX_HEADERS);
	for (size_t i = 0; i < config->n_headers; i++) {
		const struct key_value *header = &config->headers[i];
		struct error *err = check_name(header->key);
		if (!err)
			err = error_wrap(
				check_value(header->key, header->value, strlen(header->value)),
				"header");
		if (!err && is_binary_name(header->key))
			err = check_binary(header->key, header->value);
		if (err)
			return err;
	}
	bool has_token = config->bearer_token || config->bearer_token_file;
	if ((has_token && config->username) ||
	    ((has_token || config->username) && has_authorization_header(config)))
		return error_new(ERROR_USAGE, "give one of bearer token, username and an "
					      "authorization header");
	if (config->username && !config->password && !config->password_file)
		return error_new(ERROR_USAGE, "a username needs a password or a password file");
	if (config->username && strchr(config->username, ':'))
		return error_new(ERROR_USAGE, "a username for basic authentication has no colon");
	if (config->tenant_id) {
		struct error *err =
			check_value("tenant id", config->tenant_id, strlen(config->tenant_id));
		if (err)
			return err;
	}
	const char *secret = find_secret(config);
	if (secret && endpoint->is_plaintext && !config->allow_token_in_clear &&
	    !endpoint_is_loopback(endpoint))
		return error_new(ERROR_USAGE,
				 "%s would travel in clear to %s; use TLS, or allow it expressly",
				 secret, endpoint->authority);
	return NULL;
}

/* Takes value. */
static void add(struct credentials *credentials, const char *name, char *value, bool is_secret)
{
	char *lower = mem_copy_string(name);
	for (char *c = lower; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
	size_t n_value = strlen(value);
	while (is_binary_name(name) && n_value > 0 && value[n_value - 1] == '=')
		value[--n_value] = 0;
	credentials->headers = mem_realloc(credentials->headers, credentials->n + 1,
					   sizeof(*credentials->headers));
	credentials->headers[credentials->n++] = (struct request_header){
		.name = lower,
		.value = value,
		.n_name = strlen(lower),
		.n_value = n_value,
		.is_unindexed = is_secret,
	};
}

/* The content of a secret file without white space at its ends, as a string to be wiped. */
static struct error *read_secret(const char *path, char **out)
{
	struct buf buf;
	buf_init(&buf, MAX_SECRET_BYTES);
	struct error *err = file_read_all(path, &buf);
	const char *text = err ? "" : buf_string(&buf);
	size_t begin = strspn(text, " \t\r\n");
	size_t end = buf.size;
	while (end > begin && strchr(" \t\r\n", text[end - 1]))
		end--;
	if (!err && end <= begin)
		err = error_new(ERROR_BAD_DATA, "%s: empty", path);
	if (!err && memchr(text + begin, 0, end - begin))
		err = error_new(ERROR_BAD_DATA, "%s: contains a zero byte", path);
	if (!err) {
		*out = mem_alloc(end - begin + 1);
		memcpy(*out, text + begin, end - begin);
		(*out)[end - begin] = 0;
	}
	wipe_buf(&buf);
	return err;
}

static struct error *load_bearer(const struct remote_config *config,
				 struct credentials *credentials)
{
	char *token = NULL;
	const char *what = config->bearer_token_file ? config->bearer_token_file : "bearer token";
	if (config->bearer_token_file) {
		struct error *err = read_secret(config->bearer_token_file, &token);
		if (err)
			return err;
	} else {
		token = mem_copy_string(config->bearer_token);
	}
	struct error *err = check_value(what, token, strlen(token));
	if (!err && (token[0] == 0 || strchr(token, ' ')))
		err = error_new(ERROR_BAD_DATA, "%s: %s", what,
				token[0] ? "contains a blank" : "empty");
	if (!err)
		add(credentials, "authorization", mem_format("Bearer %s", token), true);
	credentials_wipe_string(token);
	return err;
}

static struct error *load_basic(const struct remote_config *config, struct credentials *credentials)
{
	char *password = NULL;
	if (config->password_file) {
		struct error *err = read_secret(config->password_file, &password);
		if (err)
			return err;
	}
	add(credentials, "authorization",
	    credentials_basic(config->username, password ? password : config->password), true);
	credentials_wipe_string(password);
	return NULL;
}

struct error *credentials_load(const struct remote_config *config, struct credentials *out)
{
	struct credentials credentials = {0};
	struct error *err = NULL;
	if (config->bearer_token || config->bearer_token_file)
		err = load_bearer(config, &credentials);
	else if (config->username)
		err = load_basic(config, &credentials);
	if (err) {
		credentials_fini(&credentials);
		return err;
	}
	if (config->tenant_id)
		add(&credentials, "x-scope-orgid", mem_copy_string(config->tenant_id), false);
	for (size_t i = 0; i < config->n_headers; i++)
		add(&credentials, config->headers[i].key, mem_copy_string(config->headers[i].value),
		    is_secret_name(config->headers[i].key));
	*out = credentials;
	return NULL;
}

void credentials_fini(struct credentials *credentials)
{
	for (size_t i = 0; i < credentials->n; i++) {
		mem_free((char *)credentials->headers[i].name);
		credentials_wipe_string((char *)credentials->headers[i].value);
	}
	mem_free(credentials->headers);
	*credentials = (struct credentials){0};
}

bool credentials_are_equal(const struct credentials *a, const struct credentials *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->headers[i].name, b->headers[i].name) != 0 ||
		    strcmp(a->headers[i].value, b->headers[i].value) != 0)
			return false;
	return true;
}
