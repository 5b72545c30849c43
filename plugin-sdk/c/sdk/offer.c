/* Dispatches requests for prompts, resources and completions to their functions. */

#include <string.h>
#include <strings.h>

#include "internal.h"

/* A plugin without the macro has none of these. */
#define NONE __attribute__((weak))

NONE const toolbay_prompt *toolbay_prompts(size_t *count) {
    return *count = 0, NULL;
}

NONE const toolbay_resource *toolbay_resources(size_t *count) {
    return *count = 0, NULL;
}

NONE const toolbay_completion *toolbay_completions(size_t *count) {
    return *count = 0, NULL;
}

static bool same(const char *one, const char *other) {
    return strcmp(one, other) == 0;
}

/* ------------------------------------------------- arguments given as text */

static bool is_text(const toolbay_field *field) {
    return field->kind == TOOLBAY_KIND_TEXT || field->kind == TOOLBAY_KIND_STRING;
}

toolbay_argument *toolbay_arguments_of(
    const toolbay_type *type, const toolbay_argument *list, size_t list_count, size_t *count) {
    *count = list ? list_count : type ? type->count : 0;
    toolbay_argument *arguments = toolbay_allocate(*count * sizeof *arguments);
    for (size_t i = 0; i < *count; i++) {
        if (list) {
            arguments[i] = list[i];
        } else {
            const toolbay_field *field = &type->fields[i];
            arguments[i] = (toolbay_argument){
                field->name, field->title, field->description, !field->optional && !field->pointer};
        }
    }
    return arguments;
}

static const toolbay_setting *find_value(toolbay_values values, const char *name) {
    for (size_t i = 0; i < values.count; i++) {
        if (same(values.all[i].key.data, name)) return &values.all[i];
    }
    return NULL;
}

/* Reads the values into the struct. Returns an error message, or the absent string.
 * */
static toolbay_string decode(const toolbay_type *type, toolbay_values values, void *to) {
    toolbay_writer *writer = toolbay_writer_new();
    toolbay_write_object(writer);
    for (size_t i = 0; i < type->count; i++) {
        const toolbay_field *field = &type->fields[i];
        const toolbay_setting *given = find_value(values, field->name);
        if (!given) continue;
        toolbay_write_key(writer, given->key);
        const toolbay_json *json = is_text(field) ? NULL : toolbay_json_parse(given->value);
        const toolbay_json_kind kind = json ? toolbay_json_kind_of(json) : TOOLBAY_JSON_STRING;
        if (kind == TOOLBAY_JSON_NUMBER || kind == TOOLBAY_JSON_BOOLEAN) {
            toolbay_write_raw(writer, given->value);
        } else {
            toolbay_write_string(writer, given->value);
        }
    }
    toolbay_write_object_end(writer);
    return toolbay_decode(type, toolbay_json_parse(toolbay_written(writer)), to);
}

/* ----------------------------------------------------------------- prompts */

static toolbay_result *get(const toolbay_prompt *prompt, toolbay_values values) {
    if (prompt->get_values) return prompt->get_values(prompt->context, values.all, values.count);
    if (!prompt->arguments) return prompt->get(NULL);
    void *arguments = toolbay_allocate(prompt->arguments->size);
    const toolbay_string wrong = decode(prompt->arguments, values, arguments);
    return wrong.data ? toolbay_invalid("%s", wrong.data) : prompt->get(arguments);
}

toolbay_result *toolbay_get_prompt(const char *name, toolbay_values values) {
    size_t count;
    const toolbay_prompt *prompts = toolbay_prompts(&count);
    for (size_t i = 0; i < count; i++) {
        if (!same(prompts[i].name, name)) continue;
        toolbay_result *result = get(&prompts[i], values);
        return result ? result : toolbay_output();
    }
    return toolbay_failed("there is no prompt `%s`", name);
}

/* --------------------------------------------------------------- resources */

static toolbay_result *read(const toolbay_resource *resource, const char *uri, toolbay_values values) {
    if (resource->read_values) return resource->read_values(resource->context, uri, values.all, values.count);
    if (!resource->variables) return resource->read(uri, NULL);
    void *variables = toolbay_allocate(resource->variables->size);
    const toolbay_string wrong = decode(resource->variables, values, variables);
    return wrong.data ? toolbay_invalid("%s", wrong.data) : resource->read(uri, variables);
}

/* Makes each block an item: a resource with the URI and the MIME type that the
 * author left out. */
static toolbay_result *items(toolbay_result *result, const toolbay_resource *resource, const char *uri) {
    for (size_t i = 0; i < result->count; i++) {
        block *block = &result->blocks[i];
        if (block->kind == TOOLBAY_BLOCK_LINK) {
            return toolbay_failed("the resource `%s` has a link among its items: an item is text or bytes", uri);
        }
        block->kind = TOOLBAY_BLOCK_RESOURCE;
        if (!block->uri.data) block->uri = toolbay_copy_or_absent(uri);
        if (!block->mime_type.data) block->mime_type = toolbay_copy_or_absent(resource->mime_type);
    }
    return result;
}

toolbay_result *toolbay_read_resource(const char *uri) {
    size_t count;
    const toolbay_resource *resources = toolbay_resources(&count);
    /* A resource without variables takes precedence over a template that its URI
     * matches. */
    for (int templates = 0; templates <= 1; templates++) {
        for (size_t i = 0; i < count; i++) {
            toolbay_values values;
            if (toolbay_is_template(resources[i].uri) != templates) continue;
            if (!toolbay_match_uri(resources[i].uri, uri, &values)) continue;
            toolbay_result *result = read(&resources[i], uri, values);
            return result ? items(result, &resources[i], uri) : toolbay_output();
        }
    }
    return toolbay_output();
}

/* -------------------------------------------------------------- completion */

const char *toolbay_given(const toolbay_typed *typed, const char *name) {
    const toolbay_setting *given = find_value((toolbay_values){(toolbay_setting *)typed->given, typed->given_count}, name);
    return given ? given->value.data : NULL;
}

toolbay_result *toolbay_beginning_with(const char *typed, const char *const *values) {
    toolbay_result *result = toolbay_output();
    for (; *values; values++) {
        if (strncasecmp(*values, typed, strlen(typed)) == 0) toolbay_add_text(result, toolbay_str(*values));
    }
    return result;
}

static const char *target_of(const toolbay_completion *completion) {
    return completion->prompt ? completion->prompt : completion->resource ? completion->resource : "";
}

toolbay_result *toolbay_complete(
    bool of_template, const char *target, const char *argument, const char *value, toolbay_values given) {
    size_t count;
    const toolbay_completion *completions = toolbay_completions(&count);
    for (size_t i = 0; i < count; i++) {
        if (of_template != !completions[i].prompt || !same(target_of(&completions[i]), target)) continue;
        if (!same(completions[i].argument, argument)) continue;
        const toolbay_typed typed = {value, given.all, given.count, completions[i].context};
        toolbay_result *result = completions[i].complete(&typed);
        return result ? result : toolbay_output();
    }
    return toolbay_output();
}

/* ------------------------------------------------------------------ errors */

/* Returns whether a prompt or a template has an argument with this name. */
static bool has_argument(
    const toolbay_type *type, const toolbay_argument *list, size_t list_count, const char *name) {
    size_t count;
    const toolbay_argument *arguments = toolbay_arguments_of(type, list, list_count, &count);
    for (size_t i = 0; i < count; i++) {
        if (same(arguments[i].name, name)) return true;
    }
    return false;
}

/* Returns a message if the struct cannot be read from text. */
static toolbay_string type_mistake(const char *what, const char *name, const toolbay_type *type) {
    for (size_t i = 0; type && i < type->count; i++) {
        const toolbay_field *field = &type->fields[i];
        if (field->list || field->kind >= TOOLBAY_KIND_RAW) {
            return toolbay_format(
                "%s `%s`: the argument `%s` must be a text, a number or a boolean", what, name, field->name);
        }
    }
    return (toolbay_string){0};
}

static toolbay_string completion_mistake(const toolbay_completion *completion, const offers *offers) {
    const char *target = target_of(completion);
    if (!completion->prompt == !completion->resource) {
        return toolbay_format("the completion of `%s` needs either a prompt or a resource", completion->argument);
    }
    bool found = false, has = false;
    for (size_t i = 0; completion->prompt && i < offers->prompt_count && !found; i++) {
        const toolbay_prompt *prompt = &offers->prompts[i];
        found = same(prompt->name, target);
        has = found && has_argument(
            prompt->arguments, prompt->argument_list, prompt->argument_count, completion->argument);
    }
    for (size_t i = 0; completion->resource && i < offers->resource_count && !found; i++) {
        found = same(offers->resources[i].uri, target);
        has = found && toolbay_has_variable(target, completion->argument);
    }
    const char *what = completion->prompt ? "prompt" : "resource";
    if (!found) {
        return toolbay_format("a completion is for the %s `%s`, which does not exist", what, target);
    }
    if (!has) {
        return toolbay_format(
            "a completion is for the argument `%s` of the %s `%s`, which has no such argument", completion->argument,
            what, target);
    }
    return (toolbay_string){0};
}

toolbay_string toolbay_mistake(const offers *offers) {
    toolbay_string mistake = {0};
    for (size_t i = 0; i < offers->prompt_count && !mistake.data; i++) {
        mistake = type_mistake("prompt", offers->prompts[i].name, offers->prompts[i].arguments);
    }
    for (size_t i = 0; i < offers->resource_count && !mistake.data; i++) {
        const toolbay_resource *resource = &offers->resources[i];
        mistake = type_mistake("resource", resource->uri, resource->variables);
        size_t count;
        const toolbay_argument *variables = toolbay_arguments_of(
            resource->variables, resource->argument_list, resource->argument_count, &count);
        for (size_t j = 0; j < count && !mistake.data; j++) {
            if (toolbay_has_variable(resource->uri, variables[j].name)) continue;
            mistake = toolbay_format("resource `%s`: its URI has no variable {%s}", resource->uri, variables[j].name);
        }
    }
    for (size_t i = 0; i < offers->completion_count && !mistake.data; i++) {
        const toolbay_completion *one = &offers->completions[i];
        mistake = completion_mistake(one, offers);
        for (size_t j = 0; j < i && !mistake.data; j++) {
            const toolbay_completion *other = &offers->completions[j];
            const bool kinds = !one->prompt == !other->prompt;
            if (!kinds || !same(target_of(one), target_of(other)) || !same(one->argument, other->argument)) continue;
            mistake = toolbay_format("two completions are for the argument `%s` of `%s`", one->argument, target_of(one));
        }
    }
    return mistake;
}

void toolbay_check_offers(void) {
    offers offers;
    offers.prompts = toolbay_prompts(&offers.prompt_count);
    offers.resources = toolbay_resources(&offers.resource_count);
    offers.completions = toolbay_completions(&offers.completion_count);
    const toolbay_string mistake = toolbay_mistake(&offers);
    if (mistake.data) toolbay_panic("%s", mistake.data);
}
