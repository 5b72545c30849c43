// Tests of the SDK. From this folder:
//
//     python -m ziglang build-exe -lc -cflags -std=c23 -Wall -Wextra -- sdk.c ../sdk/*.c ../sdk/json.zig -femit-bin=../../../target/sdk-c-test
//     ../../../target/sdk-c-test

#undef NDEBUG
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../sdk/toolbay_test.h"

// A struct with a field of every kind, which a tool gives back as it came.

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

TOOLBAY_PLUGIN(
    {.name = "give_back", .description = "", .arguments = &all_type, .structured = &all_type, .call = give_back},
    {.name = "everything", .description = "", .call = everything},
    {.name = "echo", .description = "", .input_schema = "{\"type\":\"object\"}", .call_json = echo, .context = "echo"},
    {.name = "ask", .description = "", .call = ask},
    {.name = "fail", .description = "", .call = fail},
    {.name = "nothing", .description = "", .call = nothing})

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

/* What the site answers, and what it was asked. */
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
    };
    const size_t count = sizeof tests / sizeof *tests;
    for (size_t i = 0; i < count; i++) tests[i]();
    printf("%zu passed, 0 failed\n", count);
}
