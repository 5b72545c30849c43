#undef NDEBUG
#include <cassert>
#include <iostream>
#include <string_view>

#include "toolbay/toolbay_test.hpp"

namespace {

void greets() {
    assert(toolbay::test::call("{{ident}}_greet", R"({"name": "Ada"})").text == "Hello, Ada.");
    assert(toolbay::test::call("{{ident}}_greet", R"({"name": "Ada", "excited": true})").text == "HELLO, ADA!");
}

void refuses_a_blank_name() {
    const toolbay::test::answer answer = toolbay::test::call("{{ident}}_greet", R"({"name": " \t"})");
    assert(answer.invalid_arguments);
    assert(answer.text == "name is empty: say who to greet");
}

void counts() {
    const toolbay::test::answer answer = toolbay::test::call("{{ident}}_count", R"({"text": "naïve café\n日本"})");
    assert(answer.structured == R"({"characters":13,"words":3,"lines":2})");
}

void counts_nothing() {
    const toolbay::test::answer answer = toolbay::test::call("{{ident}}_count", R"({"text": ""})");
    assert(answer.structured == R"({"characters":0,"words":0,"lines":0})");
}

} // namespace

int main() {
    greets();
    refuses_a_blank_name();
    counts();
    counts_nothing();
    std::cout << "4 passed, 0 failed\n";
}
