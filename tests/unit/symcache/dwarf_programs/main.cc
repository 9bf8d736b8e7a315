// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace
{
struct animal {
	virtual ~animal() = default;
	virtual int speak(int loudness) const = 0;
};

template <typename T> struct loud : animal {
	explicit loud(T value) : value_(value)
	{
	}
	int speak(int loudness) const override
	{
		if (loudness < 0)
			throw std::runtime_error("silence: " + std::to_string(loudness));
		return static_cast<int>(value_) * loudness;
	}
	T value_;
};

template <int N> inline int power(int a)
{
	return a * power<N - 1>(a);
}
template <> inline int power<0>(int)
{
	return 1;
}
} // namespace

int count_words(const std::vector<std::string> &words)
{
	struct counter {
		std::map<std::string, int> seen;
		void add(const std::string &word)
		{
			seen[word] += power<3>((int)word.size());
		}
	};
	counter local;
	std::for_each(words.begin(), words.end(),
		      [&](const std::string &word) { local.add(word); });
	int sum = 0;
	for (const auto &[word, n] : local.seen)
		sum += n;
	return sum;
}

int main(int argc, char **argv)
{
	std::vector<std::string> words(argv, argv + argc);
	words.push_back("one");
	std::sort(words.begin(), words.end(), [](const auto &a, const auto &b) { return a > b; });
	loud<double> dog(2.5);
	loud<char> cat('x');
	const animal *animals[] = {&dog, &cat};
	int sum = count_words(words);
	try {
		for (const animal *one : animals)
			sum += one->speak(argc - 2);
	} catch (const std::exception &e) {
		std::printf("%s\n", e.what());
	}
	std::printf("%d %d\n", sum, power<5>(argc));
	return 0;
}
