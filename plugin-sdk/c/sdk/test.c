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
static toolbay_http_response (*answer_http)(const toolbay_http_request *request);

/* --------------------------------------------------- in the host's place */

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

/* ------------------------------------------------------- what a test sets */

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

/* ------------------------------------------------------ what a test reads */

const char *toolbay_test_log(void) {
    return logged.data;
}

double toolbay_test_progress(void) {
    return last_progress;
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

static const char *all_text(const toolbay_result *result) {
    toolbay_string text = {NULL, 0};
    for (size_t i = 0; i < result->count; i++) {
        const block *block = &result->blocks[i];
        if (block->kind != TOOLBAY_BLOCK_TEXT) continue;
        text = text.data ? toolbay_format("%s\n%s", text.data, block->text.data) : block->text;
    }
    return text.data ? text.data : "";
}

toolbay_answer toolbay_test_call(const char *tool, const char *arguments) {
    const toolbay_result *result = toolbay_run(toolbay_str(tool), toolbay_str(arguments));
    const bool failed = result->outcome != OUTCOME_OUTPUT;
    return (toolbay_answer){
        .failed = failed,
        .invalid_arguments = result->outcome == OUTCOME_INVALID,
        .text = failed ? result->message.data : all_text(result),
        .structured = result->structured.data,
        .count = result->count,
        .result = result,
    };
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
    };
}

#endif
