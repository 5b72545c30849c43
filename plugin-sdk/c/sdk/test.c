/* The host of a test. */

#ifndef __wasm__

#include "toolbay_test.h"

#include <stdlib.h>
#include <string.h>

#include "internal.h"

static toolbay_setting *settings;
static size_t setting_count;
static bool is_cancelled;
static double last_progress;
static toolbay_string logged = {"", 0};
static toolbay_string updated = {"", 0};
static toolbay_http_response (*answer_http)(const toolbay_http_request *request);

/* A test's answer to a question, and the parameters that were asked. */
typedef struct {
    const char *key, *result; /* result is NULL if the client cannot answer */
    bool answered;
    toolbay_string params;
} prepared;

static prepared *prepared_answers;
static size_t prepared_count;

/* ------------------------------------------------- functions of the host */

void toolbay_host_log(toolbay_level level, toolbay_string message) {
    static const char *const names[] = {
        "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"};
    logged = toolbay_format("%s%s: %s\n", logged.data, names[level], message.data);
}

void toolbay_host_progress(double progress, double total, toolbay_string message) {
    (void)total;
    (void)message;
    last_progress = progress;
}

bool toolbay_cancelled(void) {
    return is_cancelled;
}

const char *toolbay_config(const char *key) {
    for (size_t i = 0; i < setting_count; i++) {
        if (strcmp(settings[i].key.data, key) == 0) return settings[i].value.data;
    }
    return NULL;
}

const toolbay_setting *toolbay_config_all(size_t *count) {
    *count = setting_count;
    return settings;
}

toolbay_http_response toolbay_http_send(const toolbay_http_request *request) {
    if (!answer_http) return (toolbay_http_response){.error = TOOLBAY_HTTP_DENIED, .message = "The request is denied."};
    const toolbay_http_response response = answer_http(request);
    const size_t limit = toolbay_http_limit(request);
    return response.body.size > limit ? toolbay_http_too_large(limit) : response;
}

void toolbay_host_resource_updated(toolbay_string uri) {
    updated = toolbay_format("%s%s\n", updated.data, uri.data);
}

/* Returns the entry of the question with this key, which is created if it is
 * missing. */
static prepared *prepared_for(const char *key) {
    for (size_t i = 0; i < prepared_count; i++) {
        if (strcmp(prepared_answers[i].key, key) == 0) return &prepared_answers[i];
    }
    prepared_answers = toolbay_reallocate(prepared_answers, (prepared_count + 1) * sizeof *prepared_answers);
    prepared *made = &prepared_answers[prepared_count++];
    *made = (prepared){.key = toolbay_copy_or_absent(key).data};
    return made;
}

toolbay_reply toolbay_host_ask(const asked *questions, size_t count, toolbay_string *answers) {
    for (size_t i = 0; i < count; i++) prepared_for(questions[i].key.data)->params = questions[i].params;
    for (size_t i = 0; i < count; i++) {
        const char *key = questions[i].key.data;
        const prepared *prepared = prepared_for(key);
        if (!prepared->answered) {
            return (toolbay_reply){
                .outcome = TOOLBAY_NOT_ASKED,
                .message = toolbay_format(
                    "the test has no answer to the question `%s`: add it by toolbay_test_answer (toolbay::test::respond)", key).data,
            };
        }
        if (!prepared->result) {
            if (questions[i].required) toolbay_panic("the client cannot answer the question `%s`, which is required", key);
            return (toolbay_reply){.outcome = TOOLBAY_UNSUPPORTED, .message = "the client does not support it"};
        }
        answers[i] = toolbay_str(prepared->result);
    }
    return (toolbay_reply){0};
}

/* ---------------------------------------------------------------- setters */

void toolbay_test_answer(const char *key, const char *result) {
    prepared *prepared = prepared_for(key);
    prepared->answered = true;
    prepared->result = toolbay_copy_or_absent(result).data;
}

void toolbay_test_http(toolbay_http_response (*answer)(const toolbay_http_request *request)) {
    answer_http = answer;
}

static int by_key(const void *left, const void *right) {
    return strcmp(((const toolbay_setting *)left)->key.data, ((const toolbay_setting *)right)->key.data);
}

void toolbay_test_config(const char *key, const char *value) {
    for (size_t i = 0; i < setting_count; i++) {
        if (strcmp(settings[i].key.data, key) == 0) settings[i] = settings[--setting_count];
    }
    if (value) {
        settings = toolbay_reallocate(settings, (setting_count + 1) * sizeof *settings);
        settings[setting_count++] = (toolbay_setting){toolbay_copy_or_absent(key), toolbay_copy_or_absent(value)};
    }
    if (setting_count) qsort(settings, setting_count, sizeof *settings, by_key);
}

void toolbay_test_cancel(bool cancelled) {
    is_cancelled = cancelled;
}

/* ---------------------------------------------------------------- results */

const char *toolbay_test_log(void) {
    return logged.data;
}

double toolbay_test_progress(void) {
    return last_progress;
}

const char *toolbay_test_updated(void) {
    return updated.data;
}

const char *toolbay_test_asked(const char *key) {
    return prepared_for(key)->params.data;
}

static const toolbay_tool *find(const char *name) {
    size_t count;
    const toolbay_tool *tools = toolbay_plugin(&count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(tools[i].name, name) == 0) return &tools[i];
    }
    return NULL;
}

const char *toolbay_test_input_schema(const char *tool) {
    const toolbay_tool *found = find(tool);
    return found ? toolbay_input_schema(found).data : NULL;
}

const char *toolbay_test_output_schema(const char *tool) {
    const toolbay_tool *found = find(tool);
    return found ? toolbay_output_schema(found).data : NULL;
}

static const char *all_text(const toolbay_result *result, toolbay_block_kind kind) {
    toolbay_string text = {NULL, 0};
    for (size_t i = 0; i < result->count; i++) {
        const block *block = &result->blocks[i];
        if (block->kind != kind || !block->text.data) continue;
        text = text.data ? toolbay_format("%s\n%s", text.data, block->text.data) : block->text;
    }
    return text.data ? text.data : "";
}

/* Returns the answer whose text is that of the blocks of one kind. */
static toolbay_answer answer_of(const toolbay_result *result, toolbay_block_kind kind) {
    const bool failed = result->outcome != OUTCOME_OUTPUT;
    return (toolbay_answer){
        .failed = failed,
        .invalid_arguments = result->outcome == OUTCOME_INVALID,
        .text = failed ? result->message.data : all_text(result, kind),
        .structured = result->structured.data,
        .count = result->count,
        .result = result,
        .description = result->description.data,
        .total = result->total,
        .more = result->more,
    };
}

toolbay_answer toolbay_test_call(const char *tool, const char *arguments) {
    return answer_of(toolbay_run(toolbay_str(tool), toolbay_str(arguments)), TOOLBAY_BLOCK_TEXT);
}

/* Returns the members of a JSON object of texts. */
static toolbay_values values_of(const char *json) {
    const toolbay_json *object = json ? toolbay_json_parse(toolbay_str(json)) : NULL;
    if (json && (!object || toolbay_json_kind_of(object) != TOOLBAY_JSON_OBJECT)) {
        toolbay_panic("not a JSON object: %s", json);
    }
    const size_t count = object ? toolbay_json_count(object) : 0;
    toolbay_setting *values = toolbay_allocate(count * sizeof *values);
    for (size_t i = 0; i < count; i++) {
        values[i].key = toolbay_json_key(object, i);
        if (!toolbay_json_string(toolbay_json_at(object, i), &values[i].value)) {
            toolbay_panic("the value of `%s` must be a string", values[i].key.data);
        }
    }
    return (toolbay_values){values, count};
}

toolbay_answer toolbay_test_prompt(const char *prompt, const char *arguments) {
    toolbay_check_offers();
    return answer_of(toolbay_get_prompt(prompt, values_of(arguments)), TOOLBAY_BLOCK_TEXT);
}

toolbay_answer toolbay_test_read(const char *uri) {
    toolbay_check_offers();
    return answer_of(toolbay_read_resource(uri), TOOLBAY_BLOCK_RESOURCE);
}

toolbay_answer toolbay_test_complete(const char *target, const char *argument, const char *value, const char *given) {
    toolbay_check_offers();
    return answer_of(
        toolbay_complete(toolbay_is_template(target), target, argument, value, values_of(given)), TOOLBAY_BLOCK_TEXT);
}

toolbay_block toolbay_test_block(toolbay_answer answer, size_t index) {
    if (index >= answer.count) toolbay_panic("block %zu of %zu", index, answer.count);
    const block *block = &answer.result->blocks[index];
    return (toolbay_block){
        .kind = toolbay_block_names(block->kind).mcp,
        .text = block->text,
        .data = block->data,
        .mime_type = block->mime_type.data,
        .uri = block->uri.data,
        .name = block->name.data,
        .last_modified = block->last_modified.data,
        .role = block->role,
        .meta = block->meta.data,
    };
}

#endif
