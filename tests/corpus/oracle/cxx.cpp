/* C++: exceptions with many landing pads, virtual calls, templates of the standard library
 * that come with code of their own, thunks, constructors that run at the start. */
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#define EXPORT extern "C" __declspec(dllexport)

struct shape {
	virtual ~shape() = default;
	virtual int area() const = 0;
	virtual const char *name() const { return "shape"; }
};
struct coloured {
	virtual ~coloured() = default;
	virtual int colour() const { return 7; }
};
struct square : shape, coloured {
	int side;
	explicit square(int n) : side(n) { if (n < 0) throw std::invalid_argument("side"); }
	int area() const override { return side * side; }
	int colour() const override { return side; }
};
struct diamond : virtual shape, virtual coloured {
	std::string label{"diamond"};
	int area() const override { return int(label.size()); }
	const char *name() const override { return label.c_str(); }
};

std::map<std::string, std::function<int(int)>> registry = {
	{"twice", [](int n) { return 2 * n; }},
	{"fail", [](int n) -> int { throw std::runtime_error(std::to_string(n)); }},
	{"half", [](int n) { return n / 2; }},
};

struct tracer {
	std::ostringstream &out;
	int n;
	~tracer() { out << n << ' '; }
};

EXPORT int classify(int n)
{
	std::ostringstream out;
	tracer first{out, 1};

	try {
		tracer second{out, 2};
		switch (n) {
		case 0: throw 1;
		case 1: throw std::string("one");
		case 2: throw std::logic_error("two");
		case 3: { tracer t{out, 3}; return registry.at("twice")(n); }
		case 4: { tracer t{out, 4}; return registry.at("none")(n); }
		case 5: { tracer t{out, 5}; return registry.at("fail")(n); }
		case 6: { std::unique_ptr<shape> s(new square(-1)); return s->area(); }
		case 7: { std::unique_ptr<shape> s(new diamond); return s->area(); }
		default: out << "default"; break;
		}
	} catch (int i) {
		out << i;
	} catch (const std::string &s) {
		out << s;
		throw;
	} catch (const std::exception &e) {
		out << e.what();
		try { throw std::length_error(out.str()); } catch (...) { out << "again"; }
	} catch (...) {
		return -1;
	}
	return int(out.str().size());
}

using value = std::variant<int, double, std::string, std::vector<int>, char, long long>;

EXPORT int visit(int n)
{
	std::vector<value> values{1, 2.0, std::string("three"), std::vector<int>{4, 5}};
	int sum = 0;

	for (const value &v : values)
		sum += std::visit([](const auto &x) { return int(sizeof(x)); }, v);
	std::sort(values.begin(), values.end());
	return sum + n;
}

EXPORT int match(const char *text)
{
	static const std::regex pattern("([a-z]+)-([0-9]{2,4})(x|y)*");
	std::cmatch found;

	return std::regex_match(text, found, pattern) ? int(found[1].length()) : 0;
}

EXPORT int in_threads(int n)
{
	std::vector<std::thread> threads;
	int total = 0;

	for (int i = 0; i < n; i++)
		threads.emplace_back([&total, i] { total += i; });
	for (auto &t : threads)
		t.join();
	return total;
}
