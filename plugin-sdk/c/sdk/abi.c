/* The contract in wit/plugin.wit in the memory layout of the component model's
 * canonical ABI: the exports of the plugin, and its imports from the host. */

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

typedef struct {
    toolbay_string name;
    option_string title, description;
    bool required;
} prompt_argument;

typedef struct {
    toolbay_string name;
    option_string title, description;
    list arguments; /* of prompt_argument */
    list icons;     /* of icon */
    option_string meta;
} prompt_definition;

typedef struct {
    uint8_t role;
    content content;
} prompt_message;

typedef struct {
    uint8_t is_failure;
    union {
        struct {
            option_string description;
            list messages; /* of prompt_message */
            option_string meta;
        } output;
        failure failure;
    };
} prompt_answer;

typedef struct {
    toolbay_string uri, name;
    option_string title, description, mime_type;
    option_u64 size;
    list audience; /* of bytes */
    option_double priority;
    option_string last_modified;
    list icons; /* of icon */
    option_string meta;
} resource_definition;

typedef struct {
    toolbay_string uri_template, name;
    option_string title, description, mime_type;
    list audience; /* of bytes */
    option_double priority;
    list icons; /* of icon */
    option_string meta;
} resource_template;

typedef struct {
    toolbay_string uri;
    option_string mime_type, text, data, meta;
} resource_contents;

typedef struct {
    uint8_t is_failure;
    union {
        list contents; /* of resource_contents */
        failure failure;
    };
} resource_answer;

typedef struct {
    uint8_t is_failure;
    union {
        struct {
            list values; /* of toolbay_string */
            uint8_t has_total;
            uint32_t total;
            bool has_more;
        } completions;
        failure failure;
    };
} completion_answer;

typedef struct {
    uint8_t is_error;
    union {
        list answers; /* of toolbay_string */
        struct {
            uint8_t kind; /* 0 is unsupported, 1 is invalid */
            toolbay_string message;
        } error;
    };
} ask_answer;

_Static_assert(sizeof(icon) == 32, "icon");
_Static_assert(sizeof(tool_definition) == 84, "tool-definition");
_Static_assert(offsetof(tool_definition, icons) == 64, "tool-definition.icons");
_Static_assert(sizeof(content) == 160, "content");
_Static_assert(offsetof(content, audience) == 112, "content.audience");
_Static_assert(offsetof(content, last_modified) == 136, "content.last-modified");
_Static_assert(sizeof(answer) == 36, "result<output, failure>");
_Static_assert(sizeof(prompt_argument) == 36, "prompt-argument");
_Static_assert(sizeof(prompt_definition) == 60, "prompt-definition");
_Static_assert(sizeof(prompt_message) == 168, "prompt-message");
_Static_assert(sizeof(prompt_answer) == 36, "result<prompt-output, failure>");
_Static_assert(sizeof(resource_definition) == 128, "resource-definition");
_Static_assert(offsetof(resource_definition, audience) == 72, "resource-definition.audience");
_Static_assert(sizeof(resource_template) == 104, "resource-template");
_Static_assert(offsetof(resource_template, icons) == 80, "resource-template.icons");
_Static_assert(sizeof(resource_contents) == 56, "resource-contents");
_Static_assert(sizeof(resource_answer) == 16, "result<list<resource-contents>, failure>");
_Static_assert(sizeof(completion_answer) == 24, "result<completions, failure>");
_Static_assert(sizeof(asked) == 24, "question");
_Static_assert(sizeof(ask_answer) == 16, "result<list<string>, ask-error>");

/* --------------------------------------------------------------- exports */

#define EXPORT(name) __attribute__((export_name(name)))

/* Allocates memory that the host writes strings to. */
EXPORT("cabi_realloc")
void *toolbay_cabi_realloc(void *memory, size_t old_size, size_t alignment, size_t size) {
    (void)old_size;
    (void)alignment; /* never larger than that of malloc */
    return toolbay_reallocate(memory, size);
}

static option_string option(toolbay_string value) {
    return (option_string){value.data != NULL, value.data ? toolbay_utf8(value) : value};
}

static option_string option_of(const char *value) {
    return option(value ? toolbay_str(value) : (toolbay_string){0});
}

/* Bytes that are not text. */
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

static failure lower_failure(const toolbay_result *result) {
    return (failure){result->outcome == OUTCOME_FAILED, toolbay_utf8(result->message)};
}

static answer lower(const toolbay_result *result) {
    if (result->outcome != OUTCOME_OUTPUT) return (answer){.is_failure = 1, .failure = lower_failure(result)};
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

/* The functions below are exported by the macros that define the tables. */

/* Returns NUL-terminated copies of the values that the host wrote. */
static toolbay_values lift_values(const toolbay_setting *given, size_t count) {
    toolbay_setting *values = toolbay_allocate(count * sizeof *values);
    for (size_t i = 0; i < count; i++) {
        values[i].key = toolbay_copy(given[i].key.data, given[i].key.size);
        values[i].value = toolbay_copy(given[i].value.data, given[i].value.size);
    }
    return (toolbay_values){values, count};
}

static list lower_arguments(const toolbay_prompt *prompt) {
    size_t count;
    const toolbay_argument *arguments = toolbay_arguments_of(
        prompt->arguments, prompt->argument_list, prompt->argument_count, &count);
    prompt_argument *lowered = toolbay_allocate(count * sizeof *lowered);
    for (size_t i = 0; i < count; i++) {
        lowered[i] = (prompt_argument){
            .name = toolbay_utf8(toolbay_str(arguments[i].name)),
            .title = option_of(arguments[i].title),
            .description = option_of(arguments[i].description),
            .required = arguments[i].required,
        };
    }
    return (list){lowered, count};
}

const void *toolbay_abi_list_prompts(void) {
    toolbay_check_offers();
    size_t count;
    const toolbay_prompt *prompts = toolbay_prompts(&count);
    prompt_definition *definitions = toolbay_allocate(count * sizeof *definitions);
    for (size_t i = 0; i < count; i++) {
        const toolbay_prompt *prompt = &prompts[i];
        definitions[i] = (prompt_definition){
            .name = toolbay_utf8(toolbay_str(prompt->name)),
            .title = option_of(prompt->title),
            .description = option_of(prompt->description),
            .arguments = lower_arguments(prompt),
            .icons = lower_icon(prompt->icon),
            .meta = option_of(prompt->meta),
        };
    }
    static list answer;
    answer = (list){definitions, count};
    return &answer;
}

const void *toolbay_abi_get_prompt(const char *name, size_t name_size, const toolbay_setting *given, size_t count) {
    static prompt_answer answer;
    const toolbay_values values = lift_values(given, count);
    const toolbay_result *result = toolbay_get_prompt(toolbay_copy(name, name_size).data, values);
    if (result->outcome != OUTCOME_OUTPUT) {
        answer = (prompt_answer){.is_failure = 1, .failure = lower_failure(result)};
        return &answer;
    }
    prompt_message *messages = toolbay_allocate(result->count * sizeof *messages);
    for (size_t i = 0; i < result->count; i++) {
        messages[i] = (prompt_message){(uint8_t)result->blocks[i].role, lower_block(&result->blocks[i])};
    }
    answer = (prompt_answer){
        .output = {
            .description = option(result->description),
            .messages = {messages, result->count},
            .meta = option(result->meta),
        },
    };
    return &answer;
}

static option_double priority_of(const toolbay_resource *resource) {
    return (option_double){resource->priority != NULL, resource->priority ? *resource->priority : 0};
}

const void *toolbay_abi_list_resources(void) {
    toolbay_check_offers();
    size_t count, listed = 0;
    const toolbay_resource *resources = toolbay_resources(&count);
    resource_definition *definitions = toolbay_allocate(count * sizeof *definitions);
    for (size_t i = 0; i < count; i++) {
        const toolbay_resource *resource = &resources[i];
        if (toolbay_is_template(resource->uri)) continue;
        definitions[listed++] = (resource_definition){
            .uri = toolbay_utf8(toolbay_str(resource->uri)),
            .name = toolbay_utf8(toolbay_str(resource->name)),
            .title = option_of(resource->title),
            .description = option_of(resource->description),
            .mime_type = option_of(resource->mime_type),
            .size = {resource->size != NULL, resource->size ? *resource->size : 0},
            .audience = lower_audience(resource->audience),
            .priority = priority_of(resource),
            .last_modified = option_of(resource->last_modified),
            .icons = lower_icon(resource->icon),
            .meta = option_of(resource->meta),
        };
    }
    static list answer;
    answer = (list){definitions, listed};
    return &answer;
}

const void *toolbay_abi_list_templates(void) {
    size_t count, listed = 0;
    const toolbay_resource *resources = toolbay_resources(&count);
    resource_template *definitions = toolbay_allocate(count * sizeof *definitions);
    for (size_t i = 0; i < count; i++) {
        const toolbay_resource *resource = &resources[i];
        if (!toolbay_is_template(resource->uri)) continue;
        definitions[listed++] = (resource_template){
            .uri_template = toolbay_utf8(toolbay_str(resource->uri)),
            .name = toolbay_utf8(toolbay_str(resource->name)),
            .title = option_of(resource->title),
            .description = option_of(resource->description),
            .mime_type = option_of(resource->mime_type),
            .audience = lower_audience(resource->audience),
            .priority = priority_of(resource),
            .icons = lower_icon(resource->icon),
            .meta = option_of(resource->meta),
        };
    }
    static list answer;
    answer = (list){definitions, listed};
    return &answer;
}

const void *toolbay_abi_read_resource(const char *uri, size_t uri_size) {
    static resource_answer answer;
    const toolbay_result *result = toolbay_read_resource(toolbay_copy(uri, uri_size).data);
    if (result->outcome != OUTCOME_OUTPUT) {
        answer = (resource_answer){.is_failure = 1, .failure = lower_failure(result)};
        return &answer;
    }
    resource_contents *contents = toolbay_allocate(result->count * sizeof *contents);
    for (size_t i = 0; i < result->count; i++) {
        const block *block = &result->blocks[i];
        contents[i] = (resource_contents){
            .uri = toolbay_utf8(block->uri),
            .mime_type = option(block->mime_type),
            .text = option(block->text),
            .data = bytes(block->data),
            .meta = option(block->meta),
        };
    }
    answer = (resource_answer){.contents = {contents, result->count}};
    return &answer;
}

const void *toolbay_abi_complete(
    int32_t kind, const char *name, size_t name_size, const char *argument, size_t argument_size, const char *value,
    size_t value_size, const toolbay_setting *given, size_t count) {
    static completion_answer answer;
    const toolbay_result *result = toolbay_complete(
        kind == 1, toolbay_copy(name, name_size).data, toolbay_copy(argument, argument_size).data,
        toolbay_copy(value, value_size).data, lift_values(given, count));
    if (result->outcome != OUTCOME_OUTPUT) {
        answer = (completion_answer){.is_failure = 1, .failure = lower_failure(result)};
        return &answer;
    }
    toolbay_string *values = toolbay_allocate(result->count * sizeof *values);
    for (size_t i = 0; i < result->count; i++) values[i] = toolbay_utf8(result->blocks[i].text);
    answer = (completion_answer){
        .completions = {
            .values = {values, result->count},
            .has_total = result->total != NULL,
            .total = result->total ? *result->total : 0,
            .has_more = result->more,
        },
    };
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
HOST("ask") void host_ask(const asked *questions, size_t count, ask_answer *answer);
HOST("resource-updated") void host_resource_updated(const char *uri, size_t size);

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
    *count = all.count;
    return lift_values(all.data, all.count).all;
}

void toolbay_host_resource_updated(toolbay_string uri) {
    host_resource_updated(uri.data, uri.size);
}

toolbay_reply toolbay_host_ask(const asked *questions, size_t count, toolbay_string *answers) {
    ask_answer answer;
    host_ask(questions, count, &answer);
    if (answer.is_error) {
        return (toolbay_reply){
            .outcome = answer.error.kind == 0 ? TOOLBAY_UNSUPPORTED : TOOLBAY_NOT_ASKED,
            .message = toolbay_copy(answer.error.message.data, answer.error.message.size).data,
        };
    }
    const toolbay_string *given = answer.answers.data;
    for (size_t i = 0; i < count; i++) {
        answers[i] = i < answer.answers.count ? toolbay_copy(given[i].data, given[i].size) : toolbay_str("");
    }
    return (toolbay_reply){0};
}

#endif
