/* The results of tools. */

#include <string.h>

#include "internal.h"

toolbay_result *toolbay_output(void) {
    toolbay_result *result = toolbay_allocate(sizeof *result);
    *result = (toolbay_result){.outcome = OUTCOME_OUTPUT};
    return result;
}

static toolbay_result *failure(outcome outcome, const char *format, va_list arguments) {
    toolbay_result *result = toolbay_output();
    result->outcome = outcome;
    result->message = toolbay_format_list(format, arguments);
    return result;
}

toolbay_result *toolbay_invalid(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    toolbay_result *result = failure(OUTCOME_INVALID, format, arguments);
    va_end(arguments);
    return result;
}

toolbay_result *toolbay_failed(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    toolbay_result *result = failure(OUTCOME_FAILED, format, arguments);
    va_end(arguments);
    return result;
}

/* Adds a block that has only a kind. */
static block *add(toolbay_result *result, toolbay_block_kind kind) {
    if (result->count == result->capacity) {
        result->capacity = result->capacity ? 2 * result->capacity : 4;
        result->blocks = toolbay_reallocate(result->blocks, result->capacity * sizeof *result->blocks);
    }
    block *added = &result->blocks[result->count++];
    *added = (block){.kind = kind, .priority = -1};
    return added;
}

toolbay_result *toolbay_text(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    toolbay_result *result = toolbay_output();
    add(result, TOOLBAY_BLOCK_TEXT)->text = toolbay_format_list(format, arguments);
    va_end(arguments);
    return result;
}

toolbay_result *toolbay_add_text(toolbay_result *result, toolbay_string text) {
    add(result, TOOLBAY_BLOCK_TEXT)->text = toolbay_copy(text.data, text.size);
    return result;
}

static toolbay_result *add_media(
    toolbay_result *result, toolbay_block_kind kind, const void *bytes, size_t size, const char *mime_type) {
    block *media = add(result, kind);
    media->data = toolbay_copy(bytes, size);
    media->mime_type = toolbay_copy_or_absent(mime_type);
    return result;
}

toolbay_result *toolbay_add_image(toolbay_result *result, const void *bytes, size_t size, const char *mime_type) {
    return add_media(result, TOOLBAY_BLOCK_IMAGE, bytes, size, mime_type);
}

toolbay_result *toolbay_add_audio(toolbay_result *result, const void *bytes, size_t size, const char *mime_type) {
    return add_media(result, TOOLBAY_BLOCK_AUDIO, bytes, size, mime_type);
}

toolbay_result *toolbay_add_link(toolbay_result *result, toolbay_link link) {
    block *added = add(result, TOOLBAY_BLOCK_LINK);
    added->uri = toolbay_copy_or_absent(link.uri);
    added->name = toolbay_copy_or_absent(link.name);
    added->title = toolbay_copy_or_absent(link.title);
    added->description = toolbay_copy_or_absent(link.description);
    added->mime_type = toolbay_copy_or_absent(link.mime_type);
    if (link.size) {
        uint64_t *size = toolbay_allocate(sizeof *size);
        *size = *link.size;
        added->size = size;
    }
    return result;
}

toolbay_result *toolbay_add_text_resource(
    toolbay_result *result, const char *uri, toolbay_string text, const char *mime_type) {
    block *resource = add(result, TOOLBAY_BLOCK_RESOURCE);
    resource->uri = toolbay_copy_or_absent(uri);
    resource->text = toolbay_copy(text.data, text.size);
    resource->mime_type = toolbay_copy_or_absent(mime_type);
    return result;
}

toolbay_result *toolbay_add_binary_resource(
    toolbay_result *result, const char *uri, const void *bytes, size_t size, const char *mime_type) {
    add_media(result, TOOLBAY_BLOCK_RESOURCE, bytes, size, mime_type);
    result->blocks[result->count - 1].uri = toolbay_copy_or_absent(uri);
    return result;
}

toolbay_result *toolbay_set_structured_json(toolbay_result *result, toolbay_string json) {
    result->structured = toolbay_copy(json.data, json.size);
    return result;
}

toolbay_result *toolbay_set_structured(toolbay_result *result, const toolbay_type *type, const void *value) {
    toolbay_writer *writer = toolbay_writer_new();
    toolbay_encode(writer, type, value);
    result->structured = toolbay_written(writer);
    return result;
}

toolbay_result *toolbay_structured(const toolbay_type *type, const void *value) {
    return toolbay_set_structured(toolbay_output(), type, value);
}

toolbay_result *toolbay_set_meta(toolbay_result *result, toolbay_string json) {
    result->meta = toolbay_copy(json.data, json.size);
    return result;
}

toolbay_result *toolbay_say(toolbay_result *result, toolbay_role role, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    add(result, TOOLBAY_BLOCK_TEXT)->text = toolbay_format_list(format, arguments);
    va_end(arguments);
    return toolbay_set_role(result, role);
}

toolbay_result *toolbay_set_role(toolbay_result *result, toolbay_role role) {
    if (result->count) result->blocks[result->count - 1].role = role;
    return result;
}

toolbay_result *toolbay_set_description(toolbay_result *result, const char *description) {
    result->description = toolbay_copy_or_absent(description);
    return result;
}

toolbay_result *toolbay_set_item_meta(toolbay_result *result, toolbay_string json) {
    if (result->count) result->blocks[result->count - 1].meta = toolbay_copy(json.data, json.size);
    return result;
}

toolbay_result *toolbay_set_total(toolbay_result *result, uint32_t total) {
    uint32_t *kept = toolbay_allocate(sizeof *kept);
    *kept = total;
    result->total = kept;
    return result;
}

toolbay_result *toolbay_set_more(toolbay_result *result) {
    result->more = true;
    return result;
}

toolbay_result *toolbay_annotate(toolbay_result *result, unsigned audience, double priority) {
    if (result->count) {
        block *last = &result->blocks[result->count - 1];
        last->audience = audience;
        last->priority = priority;
    }
    return result;
}

toolbay_result *toolbay_set_last_modified(toolbay_result *result, const char *time) {
    if (result->count) result->blocks[result->count - 1].last_modified = toolbay_copy_or_absent(time);
    return result;
}
