// Tests of the SDK. From this folder:
//
//     python -m ziglang build-exe -lc -lc++ -cflags -std=c23 -- ../sdk/c/*.c ../sdk/c/json.zig \
//         -cflags -std=c++26 -Wall -Wextra -- sdk.cpp ../sdk/*.cpp -femit-bin=../../../target/sdk-cpp-test
//     ../../../target/sdk-cpp-test

#undef NDEBUG
#include <cassert>
#include <iostream>
#include <stdexcept>

#include "../sdk/toolbay_test.hpp"

namespace {

enum class unit { celsius, fahrenheit, kelvin = 7 };

struct place {
    double latitude = 0;
    std::optional<std::string> label;

    bool operator==(const place &) const = default;
};

struct all {
    toolbay::optional<bool, "A boolean."> yes = false;
    toolbay::required<std::int8_t, ""> tiny;
    toolbay::optional<std::uint16_t, "A \"port\"."> port = 8080;
    toolbay::required<int, "", toolbay::minimum{1}, toolbay::maximum{100}> number;
    std::int64_t big;
    std::uint64_t huge;
    float small;
    toolbay::optional<unit, ""> in = unit::celsius;
    toolbay::required<std::string, "", toolbay::min_length{1}, toolbay::pattern{"^a"}> text;
    toolbay::json any;
    std::optional<int> maybe;
    toolbay::required<place, "A place."> where;
    toolbay::required<std::vector<std::string>, "", toolbay::max_length{3}> tags;
    toolbay::optional<std::vector<place>, ""> places;
    std::map<std::string, int> counts;
};

all give_back(const all &args) {
    return args;
}

toolbay::output everything() {
    return toolbay::output()
        .add("text 1")
        .annotate(toolbay::audience::user, 0.5)
        .last_modified("2026-01-12T15:00:58Z")
        .add(toolbay::image{{1, 2, 3}})
        .add(toolbay::audio{{4}, "audio/wav"})
        .add(toolbay::link{.uri = "https://example.com/a", .name = "a", .size = 7})
        .add(toolbay::text_resource{"note:1", "a note", "text/plain"})
        .add(toolbay::binary_resource{"note:2", {0, 1}})
        .meta(std::map<std::string, int>{{"example.com/k", 1}})
        .structured(std::vector<int>{1});
}

std::string ask() {
    toolbay::warning("{} settings", toolbay::config().size());
    toolbay::progress(0.5, {}, "half");
    return std::format("{} {} {}", *toolbay::config("b"), toolbay::config("c").has_value(), toolbay::cancelled());
}

toolbay::result<place> fail(const place &args) {
    if (args.latitude > 90) return toolbay::invalid("no latitude is {}", args.latitude);
    if (args.latitude < -90) return toolbay::failed("no luck");
    return args;
}

std::optional<std::string> perhaps(const place &args) {
    if (args.latitude > 0) return "north";
    return {};
}

} // namespace

std::vector<toolbay::tool> toolbay::tools() {
    return {
        {.name = "give_back", .description = "", .run = give_back},
        {.name = "everything", .description = "", .run = everything},
        {.name = "ask", .description = "", .run = ask},
        {.name = "fail", .description = "", .run = fail},
        {.name = "perhaps", .description = "", .run = perhaps},
        {.name = "nothing", .description = "", .run = [] {}},
        {.name = "both", .description = "", .run = [](const place &args) { return std::pair(image{{1}}, args); }},
        {.name = "throws", .description = "", .run = [] { throw std::runtime_error("kaboom"); }},
    };
}

namespace {

const std::string required =
    R"("tiny":-128,"number":7,"big":-9223372036854775808,"huge":18446744073709551615,"small":0.5,)"
    R"("text":"a\u0000é","any":{"k":[null,1.5]},"where":{"latitude":1},"tags":["x","y"],"counts":{"a b":1})";

void equal(std::string_view got, std::string_view expected) {
    if (got != expected) {
        std::cerr << "got:      " << got << "\nexpected: " << expected << "\n";
        assert(false);
    }
}

void every_type_comes_back_as_it_went() {
    const auto answer = toolbay::test::call("give_back", "{" + required + "}");
    equal(answer.structured.value_or(answer.text),
          R"({"yes":false,"tiny":-128,"port":8080,"number":7,"big":-9223372036854775808,)"
          R"("huge":18446744073709551615,"small":0.5,"in":"celsius","text":"a\u0000é","any":{"k":[null,1.5]},)"
          R"("maybe":null,"where":{"latitude":1,"label":null},"tags":["x","y"],"places":[],"counts":{"a b":1}})");
}

void what_may_be_left_out_may_be_there() {
    const auto answer = toolbay::test::call(
        "give_back", "{" + required + R"(,"yes":true,"port":1,"in":"kelvin","maybe":3,)"
                                      R"("places":[{"latitude":2.5,"label":"home"}]})");
    const std::string json = answer.structured.value_or(answer.text);
    assert(json.starts_with(R"({"yes":true,"tiny":-128,"port":1,)"));
    assert(json.contains(R"("in":"kelvin")") && json.contains(R"("maybe":3)"));
    assert(json.contains(R"("places":[{"latitude":2.5,"label":"home"}])"));
}

void what_does_not_fit_is_named() {
    const auto range = toolbay::test::call("give_back", R"({"tiny":300})");
    assert(range.invalid_arguments);
    equal(range.text, "`tiny` must be an integer of its size");
    equal(toolbay::test::call("give_back").text, "`tiny` is missing");
    equal(toolbay::test::call("give_back", "{" + required + R"(,"in":"rankine"})").text,
          "`in` must be one of its names");
    equal(toolbay::test::call("give_back", "{" + required + R"(,"places":[{"latitude":"x"}]})").text,
          "`places[0].latitude` must be a number");
    equal(toolbay::test::call("give_back", "{").text, "the arguments are not JSON");
}

void schemas_come_from_types() {
    equal(toolbay::test::input_schema("give_back"),
          R"({"type":"object","properties":{)"
          R"("yes":{"description":"A boolean.","type":"boolean","default":false},)"
          R"("tiny":{"type":"integer","minimum":-128,"maximum":127},)"
          R"("port":{"description":"A \"port\".","type":"integer","minimum":0,"maximum":65535,"default":8080},)"
          R"("number":{"type":"integer","minimum":1,"maximum":100},)"
          R"("big":{"type":"integer"},)"
          R"("huge":{"type":"integer","minimum":0},)"
          R"("small":{"type":"number"},)"
          R"("in":{"type":"string","enum":["celsius","fahrenheit","kelvin"],"default":"celsius"},)"
          R"("text":{"type":"string","minLength":1,"pattern":"^a"},)"
          R"("any":{},)"
          R"("maybe":{"type":"integer","minimum":-2147483648,"maximum":2147483647},)"
          R"("where":{"description":"A place.","type":"object","properties":{"latitude":{"type":"number"},)"
          R"("label":{"type":"string"}},"required":["latitude"],"additionalProperties":false},)"
          R"("tags":{"type":"array","items":{"type":"string"},"maxItems":3},)"
          R"("places":{"type":"array","items":{"type":"object","properties":{"latitude":{"type":"number"},)"
          R"("label":{"type":"string"}},"required":["latitude"],"additionalProperties":false},"default":[]},)"
          R"("counts":{"type":"object","additionalProperties":{"type":"integer","minimum":-2147483648,)"
          R"("maximum":2147483647}}},)"
          R"("required":["tiny","number","big","huge","small","text","any","where","tags","counts"],)"
          R"("additionalProperties":false})");
    const std::string place =
        R"({"type":"object","properties":{"latitude":{"type":"number"},"label":{"type":["string","null"]}},)"
        R"("required":["latitude","label"],"additionalProperties":false})";
    equal(toolbay::test::output_schema("fail"), place);
    equal(toolbay::test::output_schema("both"), place);
    equal(toolbay::test::output_schema("perhaps"), "");
    equal(toolbay::test::input_schema("ask"), R"({"type":"object","properties":{},"additionalProperties":false})");
}

void every_block_is_kept() {
    const auto answer = toolbay::test::call("everything");
    std::string kinds;
    for (const auto &block : answer.blocks) kinds += block.kind + " ";
    equal(kinds, "text image audio resource_link resource resource ");
    equal(answer.text, "text 1");
    equal(*answer.structured, "[1]");
    equal(answer.blocks[0].last_modified, "2026-01-12T15:00:58Z");
    equal(answer.blocks[1].data, "\1\2\3");
    equal(answer.blocks[3].uri, "https://example.com/a");
    assert(answer.blocks[5].data.size() == 2);
}

void results_of_other_sorts() {
    const auto invalid = toolbay::test::call("fail", R"({"latitude":91})");
    assert(invalid.invalid_arguments);
    equal(invalid.text, "no latitude is 91");
    const auto failed = toolbay::test::call("fail", R"({"latitude":-91})");
    assert(failed.failed && !failed.invalid_arguments);
    equal(*toolbay::test::call("fail", R"({"latitude":9})").structured, R"({"latitude":9,"label":null})");
    equal(toolbay::test::call("perhaps", R"({"latitude":1})").text, "north");
    assert(toolbay::test::call("perhaps", R"({"latitude":-1})").blocks.empty());
    assert(toolbay::test::call("nothing").blocks.empty());
    const auto both = toolbay::test::call("both", R"({"latitude":9})");
    assert(both.blocks.size() == 1 && both.structured);
}

void the_host_answers() {
    toolbay::test::config("a", "1");
    toolbay::test::config("b", "2");
    toolbay::test::cancel();
    equal(toolbay::test::call("ask").text, "2 false true");
    equal(toolbay::test::log(), "warning: 2 settings\n");
    assert(toolbay::test::progress() == 0.5);
}

void a_test_may_catch() {
    bool caught = false;
    try {
        toolbay::test::call("throws");
    } catch (const std::runtime_error &) {
        caught = true;
    }
    assert(caught);
}

void json_without_a_tool() {
    equal(toolbay::to_json(std::map<std::string, unit>{{"a", unit::kelvin}}).text, R"({"a":"kelvin"})");
    assert(toolbay::from_json<place>({R"({"latitude":1,"label":"x"})"}) == place(1, "x"));
    equal(toolbay::from_json<std::vector<int>>({R"([1,"a"])"}).error(), "`(root)[1]` must be an integer of its size");
}

} // namespace

int main() {
    void (*const tests[])() = {
        every_type_comes_back_as_it_went, what_may_be_left_out_may_be_there, what_does_not_fit_is_named,
        schemas_come_from_types, every_block_is_kept, results_of_other_sorts, the_host_answers, a_test_may_catch,
        json_without_a_tool,
    };
    for (const auto test : tests) test();
    std::cout << std::size(tests) << " passed, 0 failed\n";
}
