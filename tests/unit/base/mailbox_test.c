/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "base/mailbox.h"
#include "base/mem.h"

enum { MS = 1000000 };

/* What is there now. */
static void *take(struct mailbox *box)
{
	void *item;
	return mailbox_take(box, 0, &item) ? item : NULL;
}

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void mailbox_moves_items_in_order_and_around_its_end(void **state)
{
	(void)state;
	int items[7];
	struct mailbox *box = mailbox_new(3);
	assert_null(take(box));
	for (int round = 0; round < 7; round++) {
		assert_true(mailbox_put(box, &items[round]));
		assert_true(mailbox_put(box, &items[(round + 1) % 7]));
		assert_ptr_equal(take(box), &items[round]);
		assert_ptr_equal(take(box), &items[(round + 1) % 7]);
	}
	assert_null(take(box));
	mailbox_free(box, NULL);
	mailbox_free(NULL, NULL);
}

static void mailbox_full_leaves_the_item_with_the_producer(void **state)
{
	(void)state;
	int items[3];
	struct mailbox *box = mailbox_new(2);
	assert_true(mailbox_put(box, &items[0]));
	assert_true(mailbox_put(box, &items[1]));
	assert_false(mailbox_put(box, &items[2]));
	assert_ptr_equal(take(box), &items[0]);
	assert_true(mailbox_put(box, &items[2]));
	mailbox_free(box, NULL);
}

static void mailbox_take_waits_no_longer_than_asked(void **state)
{
	(void)state;
	struct mailbox *box = mailbox_new(1);
	void *item = box;
	uint64_t begin_ns = now_ns();
	assert_true(mailbox_take(box, 20 * MS, &item));
	assert_null(item);
	assert_true(now_ns() - begin_ns >= 20 * MS);
	mailbox_close(box);
	item = box;
	assert_false(mailbox_take(box, MAILBOX_FOREVER - 1, &item));
	assert_null(item);
	mailbox_free(box, NULL);
}

static void *put_later(void *context)
{
	usleep(20000);
	return mailbox_put(context, context) ? context : NULL;
}

static void mailbox_take_wakes_for_what_comes_before_its_time(void **state)
{
	(void)state;
	struct mailbox *box = mailbox_new(1);
	pthread_t producer;
	void *item, *result;
	assert_int_equal(pthread_create(&producer, NULL, put_later, box), 0);
	assert_true(mailbox_take(box, (uint64_t)60000 * MS, &item));
	assert_ptr_equal(item, box);
	pthread_join(producer, &result);
	assert_ptr_equal(result, box);
	mailbox_free(box, NULL);
}

static void mailbox_closed_gives_what_is_inside_and_takes_nothing(void **state)
{
	(void)state;
	int items[2];
	struct mailbox *box = mailbox_new(2);
	assert_true(mailbox_put(box, &items[0]));
	mailbox_close(box);
	mailbox_close(box);
	assert_false(mailbox_put(box, &items[1]));
	assert_false(mailbox_put_wait(box, &items[1]));
	assert_ptr_equal(take(box), &items[0]);
	assert_null(take(box));
	mailbox_free(box, NULL);
}

static void mailbox_free_hands_back_what_was_never_taken(void **state)
{
	(void)state;
	struct mailbox *box = mailbox_new(4);
	for (int i = 0; i < 4; i++)
		assert_true(mailbox_put_wait(box, mem_alloc(100)));
	mem_free(take(box));
	assert_true(mailbox_put_wait(box, mem_alloc(100)));
	mailbox_free(box, mem_free); /* the leak checker looks */
}

enum { N_SENT = 50000 };

static void *produce(void *context)
{
	struct mailbox *box = context;
	for (int i = 0; i < N_SENT; i++) {
		int *item = mem_alloc(sizeof(*item));
		*item = i;
		if (i % 3 == 0 && mailbox_put(box, item))
			continue;
		if (!mailbox_put_wait(box, item)) {
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
	for (void *taken; mailbox_take(box, MAILBOX_FOREVER, &taken); n++) {
		int *item = taken;
		assert_int_equal(*item, n);
		mem_free(item);
	}
	assert_int_equal(n, N_SENT);
	void *result;
	pthread_join(producer, &result);
	assert_null(result);
	mailbox_free(box, NULL);
}

static void mailbox_close_wakes_a_waiting_producer(void **state)
{
	(void)state;
	struct mailbox *box = mailbox_new(2);
	pthread_t producer;
	assert_int_equal(pthread_create(&producer, NULL, produce, box), 0);
	void *first;
	assert_true(mailbox_take(box, MAILBOX_FOREVER, &first));
	mem_free(first);
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
	void *item;
	assert_false(mailbox_take(box, MAILBOX_FOREVER, &item));
	pthread_join(closer, NULL);
	mailbox_free(box, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mailbox_moves_items_in_order_and_around_its_end),
		cmocka_unit_test(mailbox_full_leaves_the_item_with_the_producer),
		cmocka_unit_test(mailbox_take_waits_no_longer_than_asked),
		cmocka_unit_test(mailbox_take_wakes_for_what_comes_before_its_time),
		cmocka_unit_test(mailbox_closed_gives_what_is_inside_and_takes_nothing),
		cmocka_unit_test(mailbox_free_hands_back_what_was_never_taken),
		cmocka_unit_test(mailbox_loses_nothing_between_two_threads),
		cmocka_unit_test(mailbox_close_wakes_a_waiting_producer),
		cmocka_unit_test(mailbox_close_wakes_a_waiting_consumer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
