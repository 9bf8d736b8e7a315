/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "pipeline/md5.h"

static void check(const char *text, size_t n, const char *want)
{
	uint8_t digest[MD5_BYTES];
	md5_digest(text, n, digest);
	char hex[2 * MD5_BYTES + 1];
	for (size_t i = 0; i < MD5_BYTES; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	assert_string_equal(hex, want);
}

static void md5_gives_the_digests_of_rfc_1321(void **state)
{
	(void)state;
	check("", 0, "d41d8cd98f00b204e9800998ecf8427e");
	check("a", 1, "0cc175b9c0f1b6a831c399e269772661");
	check("message digest", 14, "f96b697d7cb7938d525a2f31aaf161d0");
	check("12345678901234567890123456789012345678901234567890123456789012345678901234567890",
	      80, "57edf4a22be3c955ac49da2e2107b67a");
}

/* As md5sum says. */
static void md5_pads_at_the_edges_of_blocks(void **state)
{
	(void)state;
	static const struct {
		size_t n;
		const char *digest;
	} edges[] = {
		{55, "ef1772b6dff9a122358552954ad0df65"},
		{56, "3b0c8ac703f828b04c6c197006d17218"},
		{63, "b06521f39153d618550606be297466d5"},
		{64, "014842d480b571495a4a0363793f7367"},
		{65, "c743a45e0d2e6a95cb859adae0248435"},
		{119, "8a7bd0732ed6a28ce75f6dabc90e1613"},
		{120, "5f61c0ccad4cac44c75ff505e1f1e537"},
		{200, "887f30b43b2867f4a9accceee7d16e6c"},
	};
	char text[200];
	memset(text, 'a', sizeof(text));
	for (size_t i = 0; i < ARRAY_LEN(edges); i++)
		check(text, edges[i].n, edges[i].digest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(md5_gives_the_digests_of_rfc_1321),
		cmocka_unit_test(md5_pads_at_the_edges_of_blocks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
