/* The contract in wit/plugin.wit as the component model's canonical ABI lays it
 * out in memory: what the plugin exports, and what it imports of the host. */

#ifdef __wasm__

#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* ------------------------------------------------------ shapes in memory */

/* `string` and `list<u8>` are a toolbay_string. */
typedef struct {
    uint8_t some;
    toolbay_string value;
} option_string;

typedef struct {
    const void *data;
    size_t count;
} list;

typedef struct {
    uint8_t some, value;
} option_byte; /* option<bool>, option<theme> */

typedef struct {
    uint8_t some;
    uint64_t value;
} option_u64;

typedef struct {
    uint8_t some;
    double value;
} option_double;

typedef struct {
    toolbay_string src;
    option_string mime_type;
    list sizes; /* of toolbay_string */
    option_byte theme;
} icon;

typedef struct {
    toolbay_string name;
    option_string title, description;
    toolbay_string input_schema;
    option_string output_schema;
    uint8_t has_annotations;
    option_byte read_only, destructive, idempotent, open_world;
    list icons; /* of icon */
    option_string meta;
} tool_definition;

typedef struct {
    toolbay_string kind;
    option_string text, data, mime_type, uri, name, title, description;
    option_u64 size;
    list audience; /* of bytes */
    option_double priority;
    option_string last_modified, members;
} content;

typedef struct {
    list content;
    option_string structured, meta;
} output;

typedef struct {
    uint8_t kind; /* 0 is invalid-arguments, 1 is failed */
    toolbay_string message;
} failure;

typedef struct {
    uint8_t is_failure;
    union {
        output output;
        failure failure;
    };
} answer;

_Static_assert(sizeof(icon) == 32, "icon");
_Static_assert(sizeof(tool_definition) == 84, "tool-definition");
_Static_assert(offsetof(tool_definition, icons) == 64, "tool-definition.icons");
_Static_assert(sizeof(content) == 160, "content");
_Static_assert(offsetof(content, audience) == 112, "content.audience");
_Static_assert(offsetof(content, last_modified) == 136, "content.last-modified");
_Static_assert(sizeof(answer) == 36, "result<output, failure>");

/* --------------------------------------------------------------- exports */

#define EXPORT(name) __attribute__((export_name(name)))

/* Memory that the host writes strings into. */
EXPORT("cabi_realloc")
void *toolbay_cabi_realloc(void *memory, size_t old_size, size_t alignment, size_t size) {
    (void)old_size;
    (void)alignment; /* never more than malloc's own */
    return toolbay_reallocate(memory, size);
}

static option_string option(toolbay_string value) {
    return (option_string){value.data != NULL, value.data ? toolbay_utf8(value) : value};
}

static option_string option_of(const char *value) {
    return option(value ? toolbay_str(value) : (toolbay_string){0});
}

/* Bytes, which are no text. */
static option_string bytes(toolbay_string value) {
    return (option_string){value.data != NULL, value};
}

static option_byte hint(toolbay_hint hint) {
    return (option_byte){hint != TOOLBAY_UNSAID, hint == TOOLBAY_YES};
}

static list lower_sizes(const char *const *sizes) {
    size_t count = 0;
    while (sizes && sizes[count]) count++;
    toolbay_string *lowered = toolbay_allocate(count * sizeof *lowered);
    for (size_t i = 0; i < count; i++) lowered[i] = toolbay_utf8(toolbay_str(sizes[i]));
    return (list){lowered, count};
}

static list lower_icon(const toolbay_icon *from) {
    if (!from) return (list){toolbay_allocate(0), 0};
    icon *lowered = toolbay_allocate(sizeof *lowered);
    *lowered = (icon){
        .src = toolbay_utf8(toolbay_str(from->src)),
        .mime_type = option_of(from->mime_type),
        .sizes = lower_sizes(from->sizes),
        .theme = {from->theme != NULL, from->theme && strcmp(from->theme, "dark") == 0},
    };
    return (list){lowered, 1};
}

static tool_definition lower_tool(const toolbay_tool *tool) {
    return (tool_definition){
        .name = toolbay_utf8(toolbay_str(tool->name)),
        .title = option_of(tool->title),
        .description = option_of(tool->description),
        .input_schema = toolbay_utf8(toolbay_input_schema(tool)),
        .output_schema = option(toolbay_output_schema(tool)),
        .has_annotations = tool->read_only || tool->destructive || tool->idempotent || tool->open_world,
        .read_only = hint(tool->read_only),
        .destructive = hint(tool->destructive),
        .idempotent = hint(tool->idempotent),
        .open_world = hint(tool->open_world),
        .icons = lower_icon(tool->icon),
        .meta = option_of(tool->meta),
    };
}

EXPORT("toolbay:plugin/tools@0.2.0#list-tools")
const list *toolbay_list_tools(void) {
    size_t count;
    const toolbay_tool *tools = toolbay_plugin(&count);
    tool_definition *definitions = toolbay_allocate(count * sizeof *definitions);
    for (size_t i = 0; i < count; i++) definitions[i] = lower_tool(&tools[i]);
    static list answer;
    answer = (list){definitions, count};
    return &answer;
}

static list lower_audience(unsigned audience) {
    uint8_t *lowered = toolbay_allocate(2);
    size_t count = 0;
    if (audience & TOOLBAY_FOR_USER) lowered[count++] = 0;
    if (audience & TOOLBAY_FOR_ASSISTANT) lowered[count++] = 1;
    return (list){lowered, count};
}

static content lower_block(const block *block) {
    return (content){
        .kind = toolbay_str(toolbay_block_names(block->kind).contract),
        .text = option(block->text),
        .data = bytes(block->data),
        .mime_type = option(block->mime_type),
        .uri = option(block->uri),
        .name = option(block->name),
        .title = option(block->title),
        .description = option(block->description),
        .size = {block->size != NULL, block->size ? *block->size : 0},
        .audience = lower_audience(block->audience),
        .priority = {block->priority >= 0, block->priority},
        .last_modified = option(block->last_modified),
    };
}

static answer lower(const toolbay_result *result) {
    if (result->outcome != OUTCOME_OUTPUT) {
        const uint8_t kind = result->outcome == OUTCOME_FAILED;
        return (answer){.is_failure = 1, .failure = {kind, toolbay_utf8(result->message)}};
    }
    content *blocks = toolbay_allocate(result->count * sizeof *blocks);
    for (size_t i = 0; i < result->count; i++) blocks[i] = lower_block(&result->blocks[i]);
    return (answer){
        .output = {
            .content = {blocks, result->count},
            .structured = option(result->structured),
            .meta = option(result->meta),
        },
    };
}

EXPORT("toolbay:plugin/tools@0.2.0#call-tool")
const answer *toolbay_call_tool(const char *name, size_t name_size, const char *arguments, size_t arguments_size) {
    static answer answer;
    answer = lower(toolbay_run((toolbay_string){name, name_size}, (toolbay_string){arguments, arguments_size}));
    return &answer;
}

/* --------------------------------------------------------------- imports */

#define HOST(name) __attribute__((import_module("toolbay:plugin/host@0.2.0"), import_name(name)))

HOST("log") void host_log(int32_t level, const char *message, size_t size);
HOST("progress")
void host_progress(
    double progress, int32_t has_total, double total, int32_t has_message, const char *message, size_t size);
HOST("cancelled") int32_t host_cancelled(void);
HOST("config") void host_config(const char *key, size_t size, option_string *value);
HOST("config-all") void host_config_all(list *settings);

void toolbay_host_log(toolbay_level level, toolbay_string message) {
    host_log((int32_t)level, message.data, message.size);
}

void toolbay_host_progress(double progress, double total, toolbay_string message) {
    host_progress(progress, total > 0, total, message.data != NULL, message.data, message.size);
}

bool toolbay_cancelled(void) {
    return host_cancelled() != 0;
}

const char *toolbay_config(const char *key) {
    const toolbay_string name = toolbay_utf8(toolbay_str(key));
    option_string value;
    host_config(name.data, name.size, &value);
    return value.some ? toolbay_copy(value.value.data, value.value.size).data : NULL;
}

const toolbay_setting *toolbay_config_all(size_t *count) {
    list all;
    host_config_all(&all);
    const toolbay_setting *given = all.data;
    toolbay_setting *settings = toolbay_allocate(all.count * sizeof *settings);
    for (size_t i = 0; i < all.count; i++) {
        settings[i].key = toolbay_copy(given[i].key.data, given[i].key.size);
        settings[i].value = toolbay_copy(given[i].value.data, given[i].value.size);
    }
    *count = all.count;
    return settings;
}

#endif
