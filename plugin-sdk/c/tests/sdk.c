// Tests of the SDK. From this folder:
//
//     python -m ziglang build-exe -lc -cflags -std=c23 -Wall -Wextra -- sdk.c ../sdk/*.c ../sdk/json.zig -femit-bin=../../../target/sdk-c-test
//     ../../../target/sdk-c-test

#undef NDEBUG
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../sdk/internal.h"
#include "../sdk/toolbay_test.h"

// A struct with a field of every kind, which a tool returns unchanged.

struct place {
    double latitude;
    const char *label;
};

static const toolbay_type place_type = TOOLBAY_TYPE(struct place,
    TOOLBAY_FIELD(struct place, latitude, "Degrees.", .range = {-90, 90}),
    TOOLBAY_FIELD(struct place, label, NULL, .optional = true, .nullable = true));

struct all {
    bool yes;
    int8_t tiny;
    uint16_t port;
    int32_t number;
    int64_t big;
    uint64_t huge;
    float small;
    const char *unit;
    toolbay_string any_text;
    toolbay_raw any;
    const int *maybe;
    const double *or_null;
    struct place place;
    const char **tags;
    size_t tag_count;
    struct place *places;
    size_t place_count;
};

static const char *const units[] = {"celsius", "fahrenheit", NULL};
static const struct all all_defaults = {.port = 8080, .unit = "celsius"};

static const toolbay_type all_type = TOOLBAY_TYPE_WITH_DEFAULTS(struct all, &all_defaults,
    TOOLBAY_FIELD(struct all, yes, "A boolean.", .optional = true),
    TOOLBAY_FIELD(struct all, tiny, NULL),
    TOOLBAY_FIELD(struct all, port, NULL, .optional = true),
    TOOLBAY_FIELD(struct all, number, NULL, .range = {1, 100}),
    TOOLBAY_FIELD(struct all, big, NULL),
    TOOLBAY_FIELD(struct all, huge, NULL),
    TOOLBAY_FIELD(struct all, small, NULL),
    TOOLBAY_FIELD(struct all, unit, NULL, .optional = true, .choices = units),
    TOOLBAY_FIELD(struct all, any_text, "A \"text\".", .length = {1, 9}, .pattern = "^a", .title = "Text"),
    TOOLBAY_FIELD(struct all, any, "Anything."),
    TOOLBAY_FIELD(struct all, maybe, NULL),
    TOOLBAY_FIELD(struct all, or_null, NULL, .nullable = true),
    TOOLBAY_OBJECT(struct all, place, &place_type, "A place."),
    TOOLBAY_LIST(struct all, tags, tag_count, "Tags.", .length = {0, 3}),
    TOOLBAY_OBJECTS(struct all, places, place_count, &place_type, "Places.", .optional = true));

static toolbay_result *give_back(const void *arguments) {
    return toolbay_structured(&all_type, arguments);
}

static toolbay_result *everything(const void *) {
    const uint64_t size = 7;
    toolbay_result *result = toolbay_text("text %d", 1);
    toolbay_annotate(result, TOOLBAY_FOR_USER, 0.5);
    toolbay_set_last_modified(result, "2026-01-12T15:00:58Z");
    toolbay_add_image(result, "png", 3, "image/png");
    toolbay_add_audio(result, "wav", 3, "audio/wav");
    toolbay_add_link(result, (toolbay_link){.uri = "https://example.com/a", .name = "a", .size = &size});
    toolbay_add_text_resource(result, "note:1", toolbay_str("a note"), "text/plain");
    toolbay_add_binary_resource(result, "note:2", "\0\1", 2, NULL);
    toolbay_add_text(result, toolbay_str("text 2"));
    toolbay_set_meta(result, toolbay_str("{\"example.com/k\":1}"));
    return toolbay_set_structured_json(result, toolbay_str("[1]"));
}

static toolbay_result *echo(const void *context, toolbay_string arguments) {
    return toolbay_text("%s: %s", (const char *)context, arguments.data);
}

static toolbay_result *ask(const void *) {
    size_t count;
    const toolbay_setting *settings = toolbay_config_all(&count);
    toolbay_log(TOOLBAY_WARNING, "%zu settings", count);
    toolbay_progress(0.5, 0, "half");
    return toolbay_text("%s %s %d", settings[0].key.data, toolbay_config("b"), toolbay_cancelled());
}

static toolbay_result *fail(const void *) {
    return toolbay_failed("no %s", "luck");
}

static toolbay_result *nothing(const void *) {
    return NULL;
}

// Questions of every kind.

struct order {
    const char *name, *colour, *mail;
    int count;
    bool gift;
    const char **extras;
    size_t extra_count;
};

static const char *const colours[] = {"red", "blue", NULL};
static const struct order order_defaults = {.count = 1};

static const toolbay_type order_type = TOOLBAY_TYPE_WITH_DEFAULTS(struct order, &order_defaults,
    TOOLBAY_FIELD(struct order, name, "Who orders.", .title = "Name", .length = {1, 9}),
    TOOLBAY_FIELD(struct order, colour, NULL, .choices = colours),
    TOOLBAY_FIELD(struct order, mail, NULL, .format = "email", .optional = true, .nullable = true),
    TOOLBAY_FIELD(struct order, count, NULL, .range = {1, 10}, .optional = true),
    TOOLBAY_FIELD(struct order, gift, NULL),
    TOOLBAY_LIST(struct order, extras, extra_count, NULL, .choices = colours, .optional = true));

static toolbay_result *order(const void *) {
    const toolbay_reply reply = toolbay_ask((toolbay_question){
        .kind = TOOLBAY_FORM, .key = "order", .message = "Which?", .fields = &order_type, .optional = true});
    const struct order *order = reply.fields;
    static const char *const names[] = {"accepted", "declined", "cancelled", "unsupported", "not asked"};
    if (!order) return toolbay_text("%s: %s", names[reply.outcome], reply.message ? reply.message : "");
    return toolbay_text("%s %s %d %d %zu", order->name, order->colour, order->count, order->gift, order->extra_count);
}

static toolbay_result *ask_all(const void *) {
    static const toolbay_message talk[] = {{TOOLBAY_USER, "Hi."}, {TOOLBAY_ASSISTANT, "Yes?"}};
    static const toolbay_question questions[] = {
        {.kind = TOOLBAY_VISIT, .key = "visit", .message = "Sign in.", .url = "https://example.com"},
        {.kind = TOOLBAY_ROOTS, .key = "roots"},
        {.kind = TOOLBAY_SAMPLING, .key = "one", .message = "Write.", .max_tokens = 5},
        {.kind = TOOLBAY_SAMPLING, .key = "more", .messages = talk, .message_count = 2, .system = "Be brief.",
            .max_tokens = 5, .more = "{\"temperature\":0.5,\"maxTokens\":7}"},
    };
    const toolbay_reply *replies = toolbay_ask_all(questions, 4);
    for (size_t i = 0; i < 4; i++) {
        if (replies[i].outcome != TOOLBAY_ACCEPTED) return toolbay_failed("%zu: %s", i, replies[i].message);
    }
    return toolbay_text("%zu %s %s, %s, %s", replies[1].root_count, replies[1].roots[0].uri,
        replies[1].roots[1].name, replies[2].text.data, replies[3].text.data);
}

static toolbay_result *touch(const void *) {
    toolbay_resource_updated("game://rules");
    toolbay_resource_updated("game://cards/1");
    return NULL;
}

TOOLBAY_PLUGIN(
    {.name = "order", .description = "", .call = order},
    {.name = "ask_all", .description = "", .call = ask_all},
    {.name = "touch", .description = "", .call = touch},
    {.name = "give_back", .description = "", .arguments = &all_type, .structured = &all_type, .call = give_back},
    {.name = "everything", .description = "", .call = everything},
    {.name = "echo", .description = "", .input_schema = "{\"type\":\"object\"}", .call_json = echo, .context = "echo"},
    {.name = "ask", .description = "", .call = ask},
    {.name = "fail", .description = "", .call = fail},
    {.name = "nothing", .description = "", .call = nothing})

// Prompts, resources and completions.

struct review {
    const char *code;
    toolbay_string any_text;
    const int *lines;
    bool strict;
};

static const toolbay_type review_type = TOOLBAY_TYPE(struct review,
    TOOLBAY_FIELD(struct review, code, "The code.", .title = "Code"),
    TOOLBAY_FIELD(struct review, any_text, NULL, .optional = true),
    TOOLBAY_FIELD(struct review, lines, NULL),
    TOOLBAY_FIELD(struct review, strict, NULL, .optional = true));

static toolbay_result *review(const void *arguments) {
    const struct review *args = arguments;
    if (toolbay_blank(args->code)) return toolbay_invalid("there is no code");
    return toolbay_text("%s %zu %d %d", args->code, args->any_text.size, args->lines ? *args->lines : 0, args->strict);
}

static toolbay_result *riddle(const void *) {
    toolbay_result *result = toolbay_output();
    toolbay_say(result, TOOLBAY_USER, "Ask me %s.", "a riddle");
    toolbay_say(result, TOOLBAY_ASSISTANT, "What has keys but no locks?");
    toolbay_set_role(toolbay_add_image(result, "png", 3, "image/png"), TOOLBAY_ASSISTANT);
    toolbay_set_meta(result, toolbay_str("{\"example.com/k\":1}"));
    return toolbay_set_description(result, "A game that has begun");
}

static toolbay_result *by_hand(const void *context, const toolbay_setting *values, size_t count) {
    return toolbay_text("%s %zu %s", (const char *)context, count, count ? values[0].value.data : "");
}

static const toolbay_argument by_hand_arguments[] = {{.name = "a", .required = true}};

TOOLBAY_PROMPTS(
    {.name = "review", .description = "Reviews code.", .arguments = &review_type, .get = review},
    {.name = "riddle", .description = "", .get = riddle},
    {.name = "by_hand", .description = "", .argument_list = by_hand_arguments, .argument_count = 1,
        .get_values = by_hand, .context = "by hand:"})

struct card {
    int number;
    const char *suit;
};

static const toolbay_type card_type = TOOLBAY_TYPE(struct card,
    TOOLBAY_FIELD(struct card, number, NULL));

static toolbay_result *rules(const char *, const void *) {
    return toolbay_text("There are none.");
}

static toolbay_result *card(const char *uri, const void *variables) {
    const struct card *card = variables;
    if (card->number > 9) return NULL;
    if (card->number < 0) return toolbay_failed("no card is negative");
    toolbay_result *result = toolbay_text("%s is %d", uri, card->number);
    toolbay_add_binary_resource(result, "game://cards/7/picture", "\0\1", 2, "image/png");
    return toolbay_set_item_meta(result, toolbay_str("{\"example.com/k\":1}"));
}

static toolbay_result *named(const char *, const void *variables) {
    return toolbay_text("%s", ((const struct card *)variables)->suit);
}

static const toolbay_type named_type = TOOLBAY_TYPE(struct card,
    TOOLBAY_FIELD(struct card, suit, NULL));

static toolbay_result *linked(const char *, const void *) {
    return toolbay_add_link(toolbay_output(), (toolbay_link){.uri = "a:b", .name = "b"});
}

static toolbay_result *values_by_hand(
    const void *context, const char *uri, const toolbay_setting *values, size_t count) {
    return toolbay_text("%s %s %zu %s", (const char *)context, uri, count, values[0].value.data);
}

static const uint64_t rules_size = 15;
static const double half = 0.5;
static const toolbay_icon dot = {.src = "data:image/png;base64,"};

TOOLBAY_RESOURCES(
    {.uri = "game://{suit}", .name = "named", .variables = &named_type, .read = named},
    {.uri = "game://rules", .name = "rules", .title = "Rules", .description = "What is allowed.",
        .mime_type = "text/plain", .size = &rules_size, .audience = TOOLBAY_FOR_USER, .priority = &half,
        .last_modified = "2026-01-12T15:00:58Z", .icon = &dot, .meta = "{\"example.com/k\":1}", .read = rules},
    {.uri = "game://cards/{number}", .name = "card", .title = "Card", .description = "A card.",
        .mime_type = "text/plain", .audience = TOOLBAY_FOR_ASSISTANT, .priority = &half, .icon = &dot,
        .meta = "{\"example.com/k\":2}", .variables = &card_type, .read = card},
    {.uri = "game://linked/1", .name = "linked", .read = linked},
    {.uri = "files://{+path}", .name = "file", .read_values = values_by_hand, .context = "by hand:"})

static toolbay_result *suggest(const toolbay_typed *typed) {
    static const char *const all[] = {"Python", "Ruby", "Rust", NULL};
    if (toolbay_given(typed, "code")) return toolbay_failed("%s", toolbay_given(typed, "code"));
    return toolbay_set_more(toolbay_set_total(toolbay_beginning_with(typed->value, all), 7));
}

static toolbay_result *suggest_context(const toolbay_typed *typed) {
    return toolbay_text("%s", (const char *)typed->context);
}

TOOLBAY_COMPLETIONS(
    {.prompt = "review", .argument = "any_text", .complete = suggest},
    {.prompt = "by_hand", .argument = "a", .complete = suggest_context, .context = "context"},
    {.resource = "files://{+path}", .argument = "path", .complete = suggest})

static void equal(const char *got, const char *expected) {
    if (!got || strcmp(got, expected) != 0) {
        fprintf(stderr, "got:      %s\nexpected: %s\n", got ? got : "(null)", expected);
        assert(false);
    }
}

#define REQUIRED "\"tiny\":-128,\"number\":7,\"big\":-9223372036854775808,\"huge\":18446744073709551615,\"small\":0.5," \
    "\"any_text\":\"a\\u0000\xC3\xA9\",\"any\":{\"k\":[null,1.5]},\"or_null\":null,\"place\":{\"latitude\":1},\"tags\":[\"x\",\"y\"]"

static void every_kind_comes_back_as_it_went(void) {
    const toolbay_answer answer = toolbay_test_call("give_back", "{" REQUIRED "}");
    equal(answer.structured,
        "{\"yes\":false,\"tiny\":-128,\"port\":8080,\"number\":7,\"big\":-9223372036854775808,"
        "\"huge\":18446744073709551615,\"small\":0.5,\"unit\":\"celsius\",\"any_text\":\"a\\u0000\xC3\xA9\","
        "\"any\":{\"k\":[null,1.5]},\"or_null\":null,\"place\":{\"latitude\":1,\"label\":null},"
        "\"tags\":[\"x\",\"y\"],\"places\":[]}");
}

static void what_may_be_left_out_may_be_there(void) {
    const toolbay_answer answer = toolbay_test_call("give_back",
        "{" REQUIRED ",\"yes\":true,\"port\":1,\"unit\":\"fahrenheit\",\"maybe\":3,"
        "\"places\":[{\"latitude\":2.5,\"label\":\"home\"}]}");
    assert(!answer.failed);
    assert(strstr(answer.structured, "\"yes\":true,\"tiny\":-128,\"port\":1,"));
    assert(strstr(answer.structured, "\"unit\":\"fahrenheit\""));
    assert(strstr(answer.structured, "\"maybe\":3,"));
    assert(strstr(answer.structured, "\"places\":[{\"latitude\":2.5,\"label\":\"home\"}]"));
}

static void what_does_not_fit_is_named(void) {
    const toolbay_answer range = toolbay_test_call("give_back", "{\"tiny\":300}");
    assert(range.invalid_arguments);
    equal(range.text, "`tiny` must be an integer of its size");
    equal(toolbay_test_call("give_back", "{}").text, "`tiny` is missing");
    equal(toolbay_test_call("give_back", "{" REQUIRED ",\"places\":[{\"latitude\":\"x\"}]}").text,
        "`places[0].latitude` must be a number");
    equal(toolbay_test_call("give_back", "{" REQUIRED ",\"unit\":\"a\\u0000\"}").text,
        "`unit` must be a string without the character U+0000");
    equal(toolbay_test_call("give_back", "{").text, "the arguments are not JSON");
    equal(toolbay_test_call("give_back", "[]").text, "`(root)` must be an object");
    equal(toolbay_test_call("other", "{}").text, "there is no tool `other`");
}

static void schemas_come_from_types(void) {
    equal(toolbay_test_input_schema("give_back"),
        "{\"type\":\"object\",\"properties\":{"
        "\"yes\":{\"description\":\"A boolean.\",\"type\":\"boolean\",\"default\":false},"
        "\"tiny\":{\"type\":\"integer\",\"minimum\":-128,\"maximum\":127},"
        "\"port\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":65535,\"default\":8080},"
        "\"number\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":100},"
        "\"big\":{\"type\":\"integer\"},"
        "\"huge\":{\"type\":\"integer\",\"minimum\":0},"
        "\"small\":{\"type\":\"number\"},"
        "\"unit\":{\"type\":\"string\",\"enum\":[\"celsius\",\"fahrenheit\"],\"default\":\"celsius\"},"
        "\"any_text\":{\"title\":\"Text\",\"description\":\"A \\\"text\\\".\",\"type\":\"string\",\"minLength\":1,"
        "\"maxLength\":9,\"pattern\":\"^a\"},"
        "\"any\":{\"description\":\"Anything.\"},"
        "\"maybe\":{\"type\":\"integer\",\"minimum\":-2147483648,\"maximum\":2147483647},"
        "\"or_null\":{\"type\":[\"number\",\"null\"]},"
        "\"place\":{\"description\":\"A place.\",\"type\":\"object\",\"properties\":{"
        "\"latitude\":{\"description\":\"Degrees.\",\"type\":\"number\",\"minimum\":-90,\"maximum\":90},"
        "\"label\":{\"type\":[\"string\",\"null\"]}},\"required\":[\"latitude\"],\"additionalProperties\":false},"
        "\"tags\":{\"description\":\"Tags.\",\"type\":\"array\",\"items\":{\"type\":\"string\"},\"maxItems\":3},"
        "\"places\":{\"description\":\"Places.\",\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"
        "\"latitude\":{\"description\":\"Degrees.\",\"type\":\"number\",\"minimum\":-90,\"maximum\":90},"
        "\"label\":{\"type\":[\"string\",\"null\"]}},\"required\":[\"latitude\"],\"additionalProperties\":false}}},"
        "\"required\":[\"tiny\",\"number\",\"big\",\"huge\",\"small\",\"any_text\",\"any\",\"or_null\",\"place\",\"tags\"],"
        "\"additionalProperties\":false}");
    assert(!strstr(toolbay_test_output_schema("give_back"), "default"));
    equal(toolbay_test_input_schema("ask"), "{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}");
    equal(toolbay_test_input_schema("echo"), "{\"type\":\"object\"}");
    assert(!toolbay_test_output_schema("echo"));
}

static void every_block_is_kept(void) {
    const toolbay_answer answer = toolbay_test_call("everything", "{}");
    static const char *const kinds[] = {"text", "image", "audio", "resource_link", "resource", "resource", "text"};
    assert(answer.count == sizeof kinds / sizeof *kinds);
    for (size_t i = 0; i < answer.count; i++) equal(toolbay_test_block(answer, i).kind, kinds[i]);
    equal(answer.text, "text 1\ntext 2");
    equal(answer.structured, "[1]");
    equal(toolbay_test_block(answer, 0).last_modified, "2026-01-12T15:00:58Z");
    assert(!toolbay_test_block(answer, 1).last_modified);
    equal(toolbay_test_block(answer, 1).mime_type, "image/png");
    equal(toolbay_test_block(answer, 3).uri, "https://example.com/a");
    equal(toolbay_test_block(answer, 4).text.data, "a note");
    assert(toolbay_test_block(answer, 5).data.size == 2);
}

static void the_host_answers(void) {
    toolbay_test_config("b", "gone");
    toolbay_test_config("b", "2");
    toolbay_test_config("a", "1");
    toolbay_test_cancel(true);
    equal(toolbay_test_call("ask", "{}").text, "a 2 1");
    equal(toolbay_test_log(), "warning: 2 settings\n");
    assert(toolbay_test_progress() == 0.5);
}

static void results_of_other_sorts(void) {
    const toolbay_answer failed = toolbay_test_call("fail", "{}");
    assert(failed.failed && !failed.invalid_arguments);
    equal(failed.text, "no luck");
    equal(toolbay_test_call("echo", "{\"a\":1}").text, "echo: {\"a\":1}");
    assert(toolbay_test_call("nothing", "{}").count == 0);
}

/* The response of the site, and the request that it received. */
static toolbay_http_response site(const toolbay_http_request *request) {
    static const toolbay_http_header headers[] = {{"Content-Type", "text/plain"}, {"X-Own", "1"}};
    const toolbay_string body = toolbay_format(
        "%s %s %.*s", request->method ? request->method : "GET", request->url, (int)request->body.size,
        request->body.data ? request->body.data : "");
    return (toolbay_http_response){.status = 200, .headers = headers, .header_count = 2, .body = body};
}

static void a_test_answers_requests(void) {
    const toolbay_http_response denied = toolbay_http_get("https://a.example/");
    assert(denied.error == TOOLBAY_HTTP_DENIED);
    equal(denied.message, "The request is denied.");
    toolbay_test_http(site);
    const toolbay_http_response got = toolbay_http_get("https://a.example/b");
    assert(!got.error && !got.message && got.status == 200);
    equal(got.body.data, "GET https://a.example/b ");
    equal(toolbay_http_value(&got, "content-type"), "text/plain");
    assert(!toolbay_http_value(&got, "x-other"));
    const toolbay_http_response posted =
        toolbay_http_post("https://a.example/", "application/json", toolbay_str("{}"));
    equal(posted.body.data, "POST https://a.example/ {}");
    const toolbay_http_response large =
        toolbay_http_send(&(toolbay_http_request){.url = "https://a.example/", .limit = 10});
    assert(large.error == TOOLBAY_HTTP_TOO_LARGE && !large.body.data);
    equal(large.message, "The response is larger than the tool's limit of 10 bytes.");
    toolbay_test_http(NULL);
    assert(toolbay_http_get("https://a.example/").error == TOOLBAY_HTTP_DENIED);
}

static void json_without_a_struct(void) {
    toolbay_writer *writer = toolbay_writer_new();
    toolbay_write_object(writer);
    toolbay_write_key(writer, toolbay_str("a\"b"));
    toolbay_write_array(writer);
    toolbay_write_number(writer, 0.1);
    toolbay_write_number(writer, INFINITY);
    toolbay_write_string(writer, (toolbay_string){"caf\xE9\n", 5});
    toolbay_write_raw(writer, toolbay_str("{}"));
    toolbay_write_array_end(writer);
    toolbay_write_object_end(writer);
    const toolbay_string text = toolbay_written(writer);
    equal(text.data, "{\"a\\\"b\":[0.1,null,\"caf\xEF\xBF\xBD\\n\",{}]}");

    const toolbay_json *json = toolbay_json_parse(text);
    assert(toolbay_json_kind_of(json) == TOOLBAY_JSON_OBJECT && toolbay_json_count(json) == 1);
    equal(toolbay_json_key(json, 0).data, "a\"b");
    assert(!toolbay_json_get(json, toolbay_str("b")) && !toolbay_json_at(json, 1));
    const toolbay_json *list = toolbay_json_get(json, toolbay_str("a\"b"));
    assert(toolbay_json_kind_of(list) == TOOLBAY_JSON_ARRAY && toolbay_json_count(list) == 4);
    double number;
    int64_t integer;
    assert(toolbay_json_number(toolbay_json_at(list, 0), &number) && number == 0.1);
    assert(!toolbay_json_integer(toolbay_json_at(list, 0), &integer));
    assert(toolbay_json_integer(toolbay_json_parse(toolbay_str("1e3")), &integer) && integer == 1000);
    assert(!toolbay_json_integer(toolbay_json_parse(toolbay_str("9223372036854775808")), &integer));
    assert(!toolbay_json_parse(toolbay_str("{} {}")) && !toolbay_json_parse(toolbay_str("")));
}

static void a_prompt_reads_its_arguments(void) {
    const toolbay_answer answer = toolbay_test_prompt(
        "review", "{\"code\":\"x\",\"any_text\":\"7\",\"lines\":\" 12 \",\"strict\":\"true\"}");
    assert(!answer.failed && answer.count == 1 && toolbay_test_block(answer, 0).role == TOOLBAY_USER);
    equal(answer.text, "x 1 12 1");
    equal(toolbay_test_prompt("review", "{\"code\":\"true\"}").text, "true 0 0 0");
    const toolbay_answer wrong = toolbay_test_prompt("review", "{\"code\":\"x\",\"lines\":\"many\"}");
    assert(wrong.invalid_arguments);
    equal(wrong.text, "`lines` must be an integer of its size");
    equal(toolbay_test_prompt("review", NULL).text, "`code` is missing");
    equal(toolbay_test_prompt("review", "{\"code\":\" \"}").text, "there is no code");
    equal(toolbay_test_prompt("other", NULL).text, "there is no prompt `other`");
    equal(toolbay_test_prompt("by_hand", "{\"a\":\"b\"}").text, "by hand: 1 b");
    size_t count;
    const toolbay_argument *arguments = toolbay_arguments_of(&review_type, NULL, 0, &count);
    assert(count == 4 && arguments[0].required && !arguments[1].required && !arguments[2].required);
    equal(arguments[0].title, "Code");
}

static void a_prompt_has_messages(void) {
    const toolbay_answer answer = toolbay_test_prompt("riddle", NULL);
    assert(answer.count == 3);
    equal(answer.text, "Ask me a riddle.\nWhat has keys but no locks?");
    equal(answer.description, "A game that has begun");
    assert(toolbay_test_block(answer, 0).role == TOOLBAY_USER);
    assert(toolbay_test_block(answer, 1).role == TOOLBAY_ASSISTANT);
    equal(toolbay_test_block(answer, 2).kind, "image");
    assert(toolbay_test_block(answer, 2).role == TOOLBAY_ASSISTANT);
}

static void a_resource_is_read(void) {
    const toolbay_answer fixed = toolbay_test_read("game://rules");
    equal(fixed.text, "There are none.");
    equal(toolbay_test_block(fixed, 0).uri, "game://rules");
    equal(toolbay_test_block(fixed, 0).mime_type, "text/plain");
    const toolbay_answer several = toolbay_test_read("game://cards/7");
    assert(several.count == 2);
    equal(several.text, "game://cards/7 is 7");
    equal(toolbay_test_block(several, 1).uri, "game://cards/7/picture");
    equal(toolbay_test_block(several, 1).mime_type, "image/png");
    equal(toolbay_test_block(several, 1).meta, "{\"example.com/k\":1}");
    assert(toolbay_test_block(several, 1).data.size == 2);
    equal(toolbay_test_read("game://ace%20of%20spades").text, "ace of spades");
    equal(toolbay_test_read("files://a/b%20c").text, "by hand: files://a/b%20c 1 a/b%20c");
    assert(!toolbay_test_block(toolbay_test_read("game://x"), 0).mime_type);
}

static void what_is_not_there_is_empty(void) {
    assert(toolbay_test_read("game://cards/10").count == 0);
    const toolbay_answer other = toolbay_test_read("other://x");
    assert(!other.failed && other.count == 0);
    equal(toolbay_test_read("game://cards/-1").text, "no card is negative");
    assert(toolbay_test_read("game://cards/ace").invalid_arguments);
    equal(toolbay_test_read("game://linked/1").text,
        "the resource `game://linked/1` has a link among its items: an item is text or bytes");
}

/* Returns the values of a template's variables in a URI; NULL if it does not match. */
static const char *fits(const char *template, const char *uri) {
    toolbay_values values;
    if (!toolbay_match_uri(template, uri, &values)) return NULL;
    toolbay_string all = toolbay_str("");
    for (size_t i = 0; i < values.count; i++) {
        all = toolbay_format("%s%s%s=%s", all.data, i ? " " : "", values.all[i].key.data, values.all[i].value.data);
    }
    return all.data;
}

static void a_uri_fits_or_does_not(void) {
    static const char *const cases[][3] = {
        {"notes://all", "notes://all", ""},
        {"notes://all", "notes://al", NULL},
        {"notes://all", "notes://all/", NULL},
        {"notes://{id}", "notes://7", "id=7"},
        {"notes://{id}", "notes://", NULL},
        {"notes://{id}", "notes://a/b", NULL},
        {"notes://{+path}", "notes://a/b?c", "path=a/b?c"},
        {"notes://{+path}", "notes://a%20b", "path=a%20b"},
        {"notes://{id}", "notes://a%20b", "id=a b"},
        {"notes://{id}", "notes://a%2Fb", "id=a/b"},
        {"notes://{id}", "notes://a%2", NULL},
        {"notes://{id}", "notes://a%", NULL},
        {"notes://{id}", "notes://a%ff", NULL},
        {"test://template/{id}/data", "test://template/123/data", "id=123"},
        {"test://template/{id}/data", "test://template//data", NULL},
        {"test://template/{id}/data", "test://template/1/date", NULL},
        {"a:{x}-{y}", "a:1-2-3", "x=1 y=2-3"},
        {"a:{x}{y}", "a:12", "x=1 y=2"},
        {"a:{x}{y}", "a:\xC3\xA9\xC3\xA9", "x=\xC3\xA9 y=\xC3\xA9"},
        {"a:{x}", "a:\xC3\xA9", "x=\xC3\xA9"},
        {"a:{x", "a:1", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *got = fits(cases[i][0], cases[i][1]);
        assert(!got == !cases[i][2]);
        if (got) equal(got, cases[i][2]);
    }
}

static void an_argument_is_completed(void) {
    const toolbay_answer answer = toolbay_test_complete("review", "any_text", "r", NULL);
    equal(answer.text, "Ruby\nRust");
    assert(answer.count == 2 && *answer.total == 7 && answer.more);
    assert(toolbay_test_complete("review", "code", "", NULL).count == 0);
    equal(toolbay_test_complete("review", "any_text", "", "{\"code\":\"given\"}").text, "given");
    equal(toolbay_test_complete("by_hand", "a", "", NULL).text, "context");
    equal(toolbay_test_complete("files://{+path}", "path", "p", NULL).text, "Python");
}

static void mistakes_in_tables_are_named(void) {
    static const toolbay_prompt prompt = {.name = "p", .arguments = &review_type};
    static const toolbay_prompt unreadable = {.name = "p", .arguments = &all_type};
    static const toolbay_resource resource = {.uri = "a:{x}", .variables = &named_type};
    static const toolbay_resource other = {.uri = "a:{x}"};
    static const toolbay_completion completions[] = {
        {.prompt = "p", .argument = "code"},
        {.prompt = "p", .argument = "code"},
        {.prompt = "q", .argument = "code"},
        {.prompt = "p", .argument = "name"},
        {.resource = "a:{x}", .argument = "y"},
        {.argument = "y"},
        {.resource = "a:{x}", .argument = "x"},
    };
    static const char *const mistakes[] = {
        NULL,
        NULL,
        "a completion is for the prompt `q`, which does not exist",
        "a completion is for the argument `name` of the prompt `p`, which has no such argument",
        "a completion is for the argument `y` of the resource `a:{x}`, which has no such argument",
        "the completion of `y` needs either a prompt or a resource",
        NULL,
    };
    for (size_t i = 0; i < sizeof completions / sizeof *completions; i++) {
        const offers one = {
            .prompts = &prompt, .prompt_count = 1, .resources = &other, .resource_count = 1,
            .completions = &completions[i], .completion_count = 1};
        const toolbay_string mistake = toolbay_mistake(&one);
        assert(!mistake.data == !mistakes[i]);
        if (mistake.data) equal(mistake.data, mistakes[i]);
    }
    const offers twice = {.prompts = &prompt, .prompt_count = 1, .completions = completions, .completion_count = 2};
    equal(toolbay_mistake(&twice).data, "two completions are for the argument `code` of `p`");
    const offers list = {.prompts = &unreadable, .prompt_count = 1};
    equal(toolbay_mistake(&list).data, "prompt `p`: the argument `any` must be a text, a number or a boolean");
    const offers variable = {.resources = &resource, .resource_count = 1};
    equal(toolbay_mistake(&variable).data, "resource `a:{x}`: its URI has no variable {suit}");
}

static void a_form_is_asked(void) {
    equal(toolbay_test_call("order", "{}").text,
        "not asked: the test has no answer to the question `order`: add it by toolbay_test_answer (toolbay::test::respond)");
    equal(toolbay_test_asked("order"),
        "{\"message\":\"Which?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{"
        "\"name\":{\"title\":\"Name\",\"description\":\"Who orders.\",\"type\":\"string\",\"minLength\":1,"
        "\"maxLength\":9},"
        "\"colour\":{\"type\":\"string\",\"enum\":[\"red\",\"blue\"]},"
        "\"mail\":{\"type\":\"string\",\"format\":\"email\"},"
        "\"count\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":10,\"default\":1},"
        "\"gift\":{\"type\":\"boolean\"},"
        "\"extras\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"enum\":[\"red\",\"blue\"]}}},"
        "\"required\":[\"name\",\"colour\",\"gift\"]}}");
    toolbay_test_answer("order",
        "{\"action\":\"accept\",\"content\":{\"name\":\"Ada\",\"colour\":\"red\",\"gift\":true,"
        "\"extras\":[\"blue\"]}}");
    equal(toolbay_test_call("order", "{}").text, "Ada red 1 1 1");
    toolbay_test_answer("order", "{\"action\":\"decline\"}");
    equal(toolbay_test_call("order", "{}").text, "declined: ");
    toolbay_test_answer("order", "{\"action\":\"cancel\"}");
    equal(toolbay_test_call("order", "{}").text, "cancelled: ");
    toolbay_test_answer("order", NULL);
    equal(toolbay_test_call("order", "{}").text, "unsupported: the client does not support it");
    toolbay_test_answer("order", "{\"action\":\"accept\",\"content\":{\"name\":1}}");
    equal(toolbay_test_call("order", "{}").text,
        "not asked: the answer to the question `order`: `name` must be a string");
    toolbay_test_answer("order", "{}");
    equal(toolbay_test_call("order", "{}").text,
        "not asked: the answer to the question `order`: its `action` must be accept, decline or cancel");
}

static void several_questions_are_asked_at_once(void) {
    toolbay_test_answer("visit", "{\"action\":\"accept\"}");
    toolbay_test_answer("roots", "{\"roots\":[{\"uri\":\"file:///w\"},{\"uri\":\"file:///v\",\"name\":\"v\"}]}");
    toolbay_test_answer("one", "{\"role\":\"assistant\",\"content\":{\"type\":\"text\",\"text\":\"Drip.\"}}");
    toolbay_test_answer("more",
        "{\"content\":[{\"type\":\"text\",\"text\":\"x\"},{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"y\"}]}");
    equal(toolbay_test_call("ask_all", "{}").text, "2 file:///w v, Drip., x\ny");
    equal(toolbay_test_asked("visit"), "{\"message\":\"Sign in.\",\"url\":\"https://example.com\"}");
    equal(toolbay_test_asked("roots"), "{}");
    equal(toolbay_test_asked("one"),
        "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"Write.\"}}],\"maxTokens\":5}");
    equal(toolbay_test_asked("more"),
        "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"Hi.\"}},"
        "{\"role\":\"assistant\",\"content\":{\"type\":\"text\",\"text\":\"Yes?\"}}],"
        "\"systemPrompt\":\"Be brief.\",\"temperature\":0.5,\"maxTokens\":7}");
    assert(!toolbay_test_asked("other"));
}

static void updates_are_reported(void) {
    toolbay_test_call("touch", "{}");
    equal(toolbay_test_updated(), "game://rules\ngame://cards/1\n");
}

int main(void) {
    static void (*const tests[])(void) = {
        every_kind_comes_back_as_it_went,
        what_may_be_left_out_may_be_there,
        what_does_not_fit_is_named,
        schemas_come_from_types,
        every_block_is_kept,
        the_host_answers,
        results_of_other_sorts,
        a_test_answers_requests,
        json_without_a_struct,
        a_prompt_reads_its_arguments,
        a_prompt_has_messages,
        a_resource_is_read,
        what_is_not_there_is_empty,
        a_uri_fits_or_does_not,
        an_argument_is_completed,
        mistakes_in_tables_are_named,
        a_form_is_asked,
        several_questions_are_asked_at_once,
        updates_are_reported,
    };
    const size_t count = sizeof tests / sizeof *tests;
    for (size_t i = 0; i < count; i++) tests[i]();
    printf("%zu passed, 0 failed\n", count);
}
