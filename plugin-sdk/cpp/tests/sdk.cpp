// Tests of the SDK. From this folder:
//
//     python -m ziglang build-exe -lc -lc++ -cflags -std=c23 -- ../sdk/c/*.c ../sdk/c/json.zig \
//         -cflags -std=c++26 -Wall -Wextra -- sdk.cpp ../sdk/*.cpp -femit-bin=../../../target/sdk-cpp-test
//     ../../../target/sdk-cpp-test

#undef NDEBUG
#include <cassert>
#include <iostream>
#include <stdexcept>

#include "../sdk/toolbay_ask.hpp"
#include "../sdk/toolbay_offers.hpp"
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

// Questions of every kind.

enum class colour { red, blue };

struct order_fields {
    toolbay::required<std::string, "Who orders.", toolbay::min_length{1}, toolbay::max_length{9}> name;
    colour in;
    std::optional<std::string> mail;
    toolbay::optional<int, "", toolbay::minimum{1}, toolbay::maximum{10}> count = 1;
    bool gift;
    toolbay::optional<std::vector<colour>, ""> extras;
};

std::string order() {
    const auto answer = toolbay::ask(toolbay::form<order_fields>{.key = "order", .message = "Which?", .optional = true});
    if (!answer) return std::format("{} {}", static_cast<int>(answer.error().why), answer.error().message);
    return std::format("{} {} {} {} {} {}", answer->name, answer->in == colour::red, answer->mail.has_value(), answer->count,
                       answer->gift, answer->extras.size());
}

std::string ask_all() {
    const auto [visited, folders, one, more] = toolbay::ask(
        toolbay::visit{.key = "visit", .message = "Sign in.", .url = "https://example.com"},
        toolbay::roots{.key = "roots"},
        toolbay::sampling{.key = "one", .text = "Write.", .max_tokens = 5},
        toolbay::sampling{
            .key = "more",
            .messages = {{toolbay::role::user, "Hi."}, {toolbay::role::assistant, "Yes?"}},
            .system = "Be brief.",
            .max_tokens = 5,
            .more = {R"({"temperature":0.5,"maxTokens":7})"},
        });
    if (!visited || !folders || !one || !more) return "no answer";
    return std::format("{} {} {}, {} {} {}, {}", folders->size(), (*folders)[0].uri, *(*folders)[1].name, one->text,
                       one->model, one->stop_reason, more->text);
}

void touch() {
    toolbay::resource_updated("game://rules");
    toolbay::resource_updated("game://cards/1");
}

// Prompts.

struct review_arguments {
    toolbay::required<std::string, "The code."> code;
    std::optional<std::string> text;
    std::optional<int> lines;
    toolbay::optional<bool, "Whether to be strict."> strict = false;
    toolbay::optional<unit, ""> in = unit::celsius;
};

toolbay::result<std::string> review(const review_arguments &args) {
    if (args.code == " ") return toolbay::invalid("there is no code");
    return std::format("{} {} {} {} {}", args.code, args.text.value_or("-"), args.lines.value_or(0), args.strict,
                       args.in == unit::kelvin);
}

toolbay::output riddle() {
    return toolbay::output()
        .user("Ask me a riddle.")
        .assistant("What has keys but no locks?")
        .assistant(toolbay::image{{1}})
        .description("A game that has begun")
        .meta(std::map<std::string, int>{{"example.com/k", 1}});
}

// Resources.

std::string rules() {
    return "There are none.";
}

struct card_variables {
    int number;
};

toolbay::result<std::optional<std::vector<toolbay::text_resource>>> card(const card_variables &card) {
    if (card.number < 0) return toolbay::failed("no card is negative");
    if (card.number > 9) return std::nullopt;
    return std::vector<toolbay::text_resource>{
        {.uri = {}, .text = std::format("{}", card.number)},
        {.uri = std::format("game://cards/{}/back", card.number), .text = "blue", .mime_type = "text/html"},
    };
}

struct named_variables {
    std::string suit;
};

std::pair<std::string, toolbay::bytes> named(const named_variables &variables) {
    return {variables.suit, {0, 1}};
}

place nowhere() {
    return {.latitude = 1, .label = {}};
}

toolbay::output with_meta() {
    return toolbay::output().add("text").item_meta(std::map<std::string, int>{{"example.com/k", 1}});
}

// Completions.

toolbay::result<toolbay::suggestions> suggest(std::string_view typed, const toolbay::given &given) {
    if (given.contains("code")) return toolbay::failed("{}", given.at("code"));
    toolbay::suggestions found = toolbay::beginning_with(typed, {"Python", "Ruby", "Rust"});
    found.total = 7;
    found.more = true;
    return found;
}

std::vector<std::string> suits(std::string_view) {
    return {"spades", "hearts"};
}

} // namespace

TOOLBAY_PROMPTS(
    {.name = "review", .description = "Reviews code.", .run = review},
    {.name = "riddle", .title = "Riddle", .description = "", .run = riddle})

TOOLBAY_RESOURCES(
    {.uri = "game://{suit}", .name = "named", .run = named},
    {.uri = "game://rules", .name = "rules", .mime_type = "text/plain", .run = rules, .size = 15, .priority = 0.5},
    {.uri = "game://cards/{number}", .name = "card", .mime_type = "text/plain", .run = card},
    {.uri = "game://nowhere", .name = "nowhere", .run = nowhere},
    {.uri = "game://with/meta", .name = "with_meta", .run = with_meta})

TOOLBAY_COMPLETIONS(
    {.prompt = "review", .argument = "text", .run = suggest},
    {.resource = "game://{suit}", .argument = "suit", .run = suits})

std::vector<toolbay::tool> toolbay::tools() {
    return {
        {.name = "give_back", .description = "", .run = give_back},
        {.name = "everything", .description = "", .run = everything},
        {.name = "ask", .description = "", .run = ::ask},
        {.name = "order", .description = "", .run = order},
        {.name = "ask_all", .description = "", .run = ask_all},
        {.name = "touch", .description = "", .run = touch},
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

void a_prompt_reads_its_arguments() {
    const auto answer = toolbay::test::prompt(
        "review", R"({"code":"7","text":"8","lines":" 12 ","strict":"true","in":"kelvin"})");
    equal(answer.text, "7 8 12 true true");
    assert(answer.blocks.size() == 1 && !answer.blocks[0].of_assistant);
    equal(toolbay::test::prompt("review", R"({"code":"true"})").text, "true - 0 false false");
    const auto wrong = toolbay::test::prompt("review", R"({"code":"x","lines":"many"})");
    assert(wrong.invalid_arguments);
    equal(wrong.text, "`lines` must be an integer of its size");
    equal(toolbay::test::prompt("review", R"({"code":"x","in":"rankine"})").text, "`in` must be one of its names");
    equal(toolbay::test::prompt("review").text, "`code` is missing");
    equal(toolbay::test::prompt("review", R"({"code":" "})").text, "there is no code");
    equal(toolbay::test::prompt("other").text, "there is no prompt `other`");
}

void a_prompt_has_messages() {
    const auto answer = toolbay::test::prompt("riddle");
    equal(answer.text, "Ask me a riddle.\nWhat has keys but no locks?");
    equal(answer.description, "A game that has begun");
    assert(answer.blocks.size() == 3 && !answer.blocks[0].of_assistant);
    assert(answer.blocks[1].of_assistant && answer.blocks[2].of_assistant);
    equal(answer.blocks[2].kind, "image");
}

void prompts_and_resources_are_listed() {
    size_t count;
    const toolbay_prompt *prompts = toolbay_prompts(&count);
    assert(count == 2 && prompts[0].argument_count == 5);
    equal(prompts[1].title, "Riddle");
    equal(prompts[0].argument_list[0].name, "code");
    equal(prompts[0].argument_list[0].description, "The code.");
    assert(prompts[0].argument_list[0].required && !prompts[0].argument_list[1].required);
    const toolbay_resource *resources = toolbay_resources(&count);
    assert(count == 5 && *resources[1].size == 15 && *resources[1].priority == 0.5);
    equal(resources[1].mime_type, "text/plain");
}

void a_resource_is_read() {
    const auto fixed = toolbay::test::read("game://rules");
    equal(fixed.text, "There are none.");
    equal(fixed.blocks[0].uri, "game://rules");
    equal(fixed.blocks[0].mime_type, "text/plain");
    const auto several = toolbay::test::read("game://cards/7");
    equal(several.text, "7\nblue");
    equal(several.blocks[0].uri, "game://cards/7");
    equal(several.blocks[0].mime_type, "text/plain");
    equal(several.blocks[1].uri, "game://cards/7/back");
    equal(several.blocks[1].mime_type, "text/html");
    const auto pair = toolbay::test::read("game://ace%20of%20spades");
    equal(pair.text, "ace of spades");
    assert(pair.blocks.size() == 2 && pair.blocks[1].data.size() == 2);
    const auto json = toolbay::test::read("game://nowhere");
    equal(json.text, R"({"latitude":1,"label":null})");
    equal(json.blocks[0].mime_type, "application/json");
    equal(toolbay::test::read("game://with/meta").blocks[0].meta, R"({"example.com/k":1})");
}

void what_is_not_there_is_empty() {
    assert(toolbay::test::read("game://cards/10").blocks.empty());
    const auto other = toolbay::test::read("other://x");
    assert(!other.failed && other.blocks.empty());
    equal(toolbay::test::read("game://cards/-1").text, "no card is negative");
    assert(toolbay::test::read("game://cards/ace").invalid_arguments);
}

void an_argument_is_completed() {
    const auto answer = toolbay::test::complete("review", "text", "r");
    equal(answer.text, "Ruby\nRust");
    assert(answer.total == 7 && answer.more);
    equal(toolbay::test::complete("review", "text", "", R"({"code":"given"})").text, "given");
    equal(toolbay::test::complete("game://{suit}", "suit", "").text, "spades\nhearts");
    assert(toolbay::test::complete("review", "code", "").blocks.empty());
    assert(toolbay::beginning_with("RUST-", {"Rust"}).values.empty());
}

void a_form_is_asked() {
    equal(toolbay::test::call("order").text,
          "4 the test has no answer to the question `order`: add it by toolbay_test_answer (toolbay::test::respond)");
    equal(toolbay::test::asked("order"),
          R"({"message":"Which?","requestedSchema":{"type":"object","properties":{)"
          R"("name":{"description":"Who orders.","type":"string","minLength":1,"maxLength":9},)"
          R"("in":{"type":"string","enum":["red","blue"]},)"
          R"("mail":{"type":"string"},)"
          R"("count":{"type":"integer","minimum":1,"maximum":10,"default":1},)"
          R"("gift":{"type":"boolean"},)"
          R"("extras":{"type":"array","items":{"type":"string","enum":["red","blue"]},"default":[]}},)"
          R"("required":["name","in","gift"]}})");
    toolbay::test::respond(
        "order", R"({"action":"accept","content":{"name":"Ada","in":"red","gift":true,"extras":["blue"]}})");
    equal(toolbay::test::call("order").text, "Ada true false 1 true 1");
    toolbay::test::respond("order", R"({"action":"decline"})");
    equal(toolbay::test::call("order").text, "1 the user declined");
    toolbay::test::respond("order", R"({"action":"cancel"})");
    equal(toolbay::test::call("order").text, "2 the user cancelled");
    toolbay::test::respond("order", std::nullopt);
    equal(toolbay::test::call("order").text, "3 the client does not support it");
    toolbay::test::respond("order", R"({"action":"accept"})");
    equal(toolbay::test::call("order").text, "4 the answer to the question `order`: `name` is missing");
}

void several_questions_are_asked_at_once() {
    toolbay::test::respond("visit", R"({"action":"accept"})");
    toolbay::test::respond("roots", R"({"roots":[{"uri":"file:///w"},{"uri":"file:///v","name":"v"}]})");
    toolbay::test::respond("one", R"({"model":"m","stopReason":"endTurn","content":{"type":"text","text":"Drip."}})");
    toolbay::test::respond("more", R"({"content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]})");
    equal(toolbay::test::call("ask_all").text, "2 file:///w v, Drip. m endTurn, x\ny");
    equal(toolbay::test::asked("visit"), R"({"message":"Sign in.","url":"https://example.com"})");
    equal(toolbay::test::asked("roots"), "{}");
    equal(toolbay::test::asked("one"),
          R"({"messages":[{"role":"user","content":{"type":"text","text":"Write."}}],"maxTokens":5})");
    equal(toolbay::test::asked("more"),
          R"({"messages":[{"role":"user","content":{"type":"text","text":"Hi."}},)"
          R"({"role":"assistant","content":{"type":"text","text":"Yes?"}}],)"
          R"("systemPrompt":"Be brief.","temperature":0.5,"maxTokens":7})");
    equal(toolbay::test::asked("other"), "");
}

void updates_are_reported() {
    toolbay::test::call("touch");
    equal(toolbay::test::updated(), "game://rules\ngame://cards/1\n");
}

} // namespace

int main() {
    void (*const tests[])() = {
        every_type_comes_back_as_it_went, what_may_be_left_out_may_be_there, what_does_not_fit_is_named,
        schemas_come_from_types, every_block_is_kept, results_of_other_sorts, the_host_answers, a_test_may_catch,
        json_without_a_tool, a_prompt_reads_its_arguments, a_prompt_has_messages, prompts_and_resources_are_listed,
        a_resource_is_read, what_is_not_there_is_empty, an_argument_is_completed, a_form_is_asked,
        several_questions_are_asked_at_once, updates_are_reported,
    };
    for (const auto test : tests) test();
    std::cout << std::size(tests) << " passed, 0 failed\n";
}
