/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "base/mailbox.h"
#include "base/mem.h"

static bool is_readable(const struct mailbox *box)
{
	struct pollfd fd = {.fd = mailbox_fd(box), .events = POLLIN};
	return poll(&fd, 1, 0) == 1;
}

static void mailbox_moves_items_in_order_and_around_its_end(void **state)
{
	(void)state;
	int items[7];
	struct mailbox *box = mailbox_new(3);
	assert_null(mailbox_try_take(box));
	for (int round = 0; round < 7; round++) {
		assert_true(mailbox_try_put(box, &items[round]));
		assert_true(mailbox_try_put(box, &items[(round + 1) % 7]));
		assert_ptr_equal(mailbox_try_take(box), &items[round]);
		assert_ptr_equal(mailbox_take(box), &items[(round + 1) % 7]);
	}
	assert_null(mailbox_try_take(box));
	mailbox_free(box, NULL);
	mailbox_free(NULL, NULL);
}

static void mailbox_full_leaves_the_item_with_the_producer(void **state)
{
	(void)state;
	int items[3];
	struct mailbox *box = mailbox_new(2);
	assert_true(mailbox_try_put(box, &items[0]));
	assert_true(mailbox_try_put(box, &items[1]));
	assert_false(mailbox_try_put(box, &items[2]));
	assert_ptr_equal(mailbox_try_take(box), &items[0]);
	assert_true(mailbox_try_put(box, &items[2]));
	mailbox_free(box, NULL);
}

static void mailbox_descriptor_is_readable_while_items_wait(void **state)
{
	(void)state;
	int items[2];
	struct mailbox *box = mailbox_new(2);
	assert_false(is_readable(box));
	mailbox_try_put(box, &items[0]);
	mailbox_try_put(box, &items[1]);
	assert_true(is_readable(box));
	mailbox_try_take(box);
	assert_true(is_readable(box));
	mailbox_try_take(box);
	assert_false(is_readable(box));
	mailbox_close(box);
	assert_true(is_readable(box));
	assert_null(mailbox_try_take(box));
	assert_true(is_readable(box));
	mailbox_free(box, NULL);
}

static void mailbox_closed_gives_what_is_inside_and_takes_nothing(void **state)
{
	(void)state;
	int items[2];
	struct mailbox *box = mailbox_new(2);
	mailbox_try_put(box, &items[0]);
	mailbox_close(box);
	mailbox_close(box);
	assert_false(mailbox_try_put(box, &items[1]));
	assert_false(mailbox_put(box, &items[1]));
	assert_ptr_equal(mailbox_take(box), &items[0]);
	assert_null(mailbox_take(box));
	assert_true(is_readable(box));
	mailbox_free(box, NULL);
}

static void mailbox_free_hands_back_what_was_never_taken(void **state)
{
	(void)state;
	struct mailbox *box = mailbox_new(4);
	for (int i = 0; i < 4; i++)
		assert_true(mailbox_put(box, mem_alloc(100)));
	mem_free(mailbox_take(box));
	assert_true(mailbox_put(box, mem_alloc(100)));
	mailbox_free(box, mem_free); /* the leak checker looks */
}

enum { N_SENT = 50000 };

static void *produce(void *context)
{
	struct mailbox *box = context;
	for (int i = 0; i < N_SENT; i++) {
		int *item = mem_alloc(sizeof(*item));
		*item = i;
		if (i % 3 == 0 && mailbox_try_put(box, item))
			continue;
		if (!mailbox_put(box, item)) {
			mem_free(item);
			return context;
		}
	}
	mailbox_close(box);
	return NULL;
}

static void mailbox_loses_nothing_between_two_threads(void **state)
{
	(void)state;
	struct mailbox *box = mailbox_new(16);
	pthread_t producer;
	assert_int_equal(pthread_create(&producer, NULL, produce, box), 0);
	int n = 0;
	for (int *item; (item = mailbox_take(box)); n++) {
		assert_int_equal(*item, n);
		mem_free(item);
	}
	assert_int_equal(n, N_SENT);
	void *result;
	pthread_join(producer, &result);
	assert_null(result);
	mailbox_free(box, NULL);
}

/* The consumer as an event loop sees it: sleep on the descriptor, then take what is there. */
static void mailbox_descriptor_misses_no_wake_up(void **state)
{
	(void)state;
	struct mailbox *box = mailbox_new(4);
	pthread_t producer;
	assert_int_equal(pthread_create(&producer, NULL, produce, box), 0);
	int n = 0;
	while (n < N_SENT) {
		struct pollfd fd = {.fd = mailbox_fd(box), .events = POLLIN};
		assert_int_equal(poll(&fd, 1, 60000), 1);
		for (int *item; (item = mailbox_try_take(box)); n++) {
			assert_int_equal(*item, n);
			mem_free(item);
		}
	}
	pthread_join(producer, NULL);
	mailbox_free(box, NULL);
}

static void mailbox_close_wakes_a_waiting_producer(void **state)
{
	(void)state;
	struct mailbox *box = mailbox_new(2);
	pthread_t producer;
	assert_int_equal(pthread_create(&producer, NULL, produce, box), 0);
	mem_free(mailbox_take(box));
	usleep(20000);
	mailbox_close(box);
	void *result;
	pthread_join(producer, &result);
	assert_ptr_equal(result, box);
	mailbox_free(box, mem_free);
}

static void *close_later(void *context)
{
	usleep(20000);
	mailbox_close(context);
	return NULL;
}

static void mailbox_close_wakes_a_waiting_consumer(void **state)
{
	(void)state;
	struct mailbox *box = mailbox_new(2);
	pthread_t closer;
	assert_int_equal(pthread_create(&closer, NULL, close_later, box), 0);
	assert_null(mailbox_take(box));
	pthread_join(closer, NULL);
	mailbox_free(box, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mailbox_moves_items_in_order_and_around_its_end),
		cmocka_unit_test(mailbox_full_leaves_the_item_with_the_producer),
		cmocka_unit_test(mailbox_descriptor_is_readable_while_items_wait),
		cmocka_unit_test(mailbox_closed_gives_what_is_inside_and_takes_nothing),
		cmocka_unit_test(mailbox_free_hands_back_what_was_never_taken),
		cmocka_unit_test(mailbox_loses_nothing_between_two_threads),
		cmocka_unit_test(mailbox_descriptor_misses_no_wake_up),
		cmocka_unit_test(mailbox_close_wakes_a_waiting_producer),
		cmocka_unit_test(mailbox_close_wakes_a_waiting_consumer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
