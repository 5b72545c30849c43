/* Conversion between JSON and the structs that a toolbay_type describes. */

#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* ------------------------------------------------------------- to JSON */

static int64_t load_integer(const char *at, size_t size) {
    int8_t one;
    int16_t two;
    int32_t four;
    int64_t eight;
    switch (size) {
    case sizeof one: return memcpy(&one, at, size), one;
    case sizeof two: return memcpy(&two, at, size), two;
    case sizeof four: return memcpy(&four, at, size), four;
    default: return memcpy(&eight, at, sizeof eight), eight;
    }
}

static uint64_t load_natural(const char *at, size_t size) {
    uint8_t one;
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (size) {
    case sizeof one: return memcpy(&one, at, size), one;
    case sizeof two: return memcpy(&two, at, size), two;
    case sizeof four: return memcpy(&four, at, size), four;
    default: return memcpy(&eight, at, sizeof eight), eight;
    }
}

static double load_number(const char *at, size_t size) {
    float small;
    double number;
    if (size == sizeof small) return memcpy(&small, at, size), small;
    return memcpy(&number, at, sizeof number), number;
}

static const void *load_pointer(const char *at) {
    const void *pointer;
    memcpy(&pointer, at, sizeof pointer);
    return pointer;
}

static void encode_value(toolbay_writer *writer, const toolbay_field *field, const char *at) {
    toolbay_string string;
    bool boolean;
    switch (field->kind) {
    case TOOLBAY_KIND_BOOLEAN:
        memcpy(&boolean, at, sizeof boolean);
        toolbay_write_boolean(writer, boolean);
        break;
    case TOOLBAY_KIND_INTEGER:
        toolbay_write_integer(writer, load_integer(at, field->size));
        break;
    case TOOLBAY_KIND_NATURAL:
        toolbay_write_natural(writer, load_natural(at, field->size));
        break;
    case TOOLBAY_KIND_NUMBER:
        toolbay_write_number(writer, load_number(at, field->size));
        break;
    case TOOLBAY_KIND_TEXT:
        toolbay_write_string(writer, toolbay_str(load_pointer(at)));
        break;
    case TOOLBAY_KIND_STRING:
        memcpy(&string, at, sizeof string);
        toolbay_write_string(writer, string);
        break;
    case TOOLBAY_KIND_RAW:
        memcpy(&string, at, sizeof string);
        if (string.data) {
            toolbay_write_raw(writer, string);
        } else {
            toolbay_write_null(writer);
        }
        break;
    case TOOLBAY_KIND_OBJECT:
        toolbay_encode(writer, field->type, at);
        break;
    }
}

/* Returns whether the field has no value: its pointer, or that of its string,
 * is NULL. */
static bool is_nothing(const toolbay_field *field, const char *at) {
    const bool points = field->pointer || field->kind == TOOLBAY_KIND_TEXT || field->kind == TOOLBAY_KIND_STRING;
    return !field->list && points && !load_pointer(at);
}

void toolbay_encode_field(toolbay_writer *writer, const toolbay_field *field, const void *value) {
    const char *at = (const char *)value + field->offset;
    if (field->list) {
        size_t count;
        memcpy(&count, (const char *)value + field->count_offset, sizeof count);
        const char *items = load_pointer(at);
        toolbay_write_array(writer);
        for (size_t i = 0; i < count; i++) encode_value(writer, field, items + i * field->size);
        toolbay_write_array_end(writer);
    } else if (field->nullable && is_nothing(field, at)) {
        toolbay_write_null(writer);
    } else {
        encode_value(writer, field, field->pointer ? load_pointer(at) : at);
    }
}

void toolbay_encode(toolbay_writer *writer, const toolbay_type *type, const void *value) {
    toolbay_write_object(writer);
    for (size_t i = 0; i < type->count; i++) {
        const toolbay_field *field = &type->fields[i];
        const bool may_be_missing = field->optional || field->pointer;
        if (may_be_missing && !field->nullable && is_nothing(field, (const char *)value + field->offset)) continue;
        toolbay_write_key(writer, toolbay_str(field->name));
        toolbay_encode_field(writer, field, value);
    }
    toolbay_write_object_end(writer);
}

/* ----------------------------------------------------------- from JSON */

static bool store_integer(char *at, size_t size, int64_t value) {
    const int8_t one = (int8_t)value;
    const int16_t two = (int16_t)value;
    const int32_t four = (int32_t)value;
    switch (size) {
    case sizeof one: memcpy(at, &one, size); return one == value;
    case sizeof two: memcpy(at, &two, size); return two == value;
    case sizeof four: memcpy(at, &four, size); return four == value;
    default: memcpy(at, &value, sizeof value); return true;
    }
}

static bool store_natural(char *at, size_t size, uint64_t value) {
    const uint8_t one = (uint8_t)value;
    const uint16_t two = (uint16_t)value;
    const uint32_t four = (uint32_t)value;
    switch (size) {
    case sizeof one: memcpy(at, &one, size); return one == value;
    case sizeof two: memcpy(at, &two, size); return two == value;
    case sizeof four: memcpy(at, &four, size); return four == value;
    default: memcpy(at, &value, sizeof value); return true;
    }
}

static toolbay_string wrong(const char *path, const char *expected) {
    return toolbay_format("`%s` must be %s", path, expected);
}

static toolbay_string decode_value(
    const toolbay_field *field, const char *path, const toolbay_json *json, char *at);
static toolbay_string decode_object(
    const toolbay_type *type, const char *path, const toolbay_json *json, char *value);

static toolbay_string decode_text(const char *path, const toolbay_json *json, char *at) {
    toolbay_string string;
    if (!toolbay_json_string(json, &string)) return wrong(path, "a string");
    if (strlen(string.data) != string.size) return wrong(path, "a string without the character U+0000");
    memcpy(at, &string.data, sizeof string.data);
    return (toolbay_string){0};
}

static toolbay_string decode_number(const toolbay_field *field, const char *path, const toolbay_json *json, char *at) {
    double number;
    if (!toolbay_json_number(json, &number)) return wrong(path, "a number");
    const float small = (float)number;
    memcpy(at, field->size == sizeof small ? (const void *)&small : &number, field->size);
    return (toolbay_string){0};
}

static toolbay_string decode_value(
    const toolbay_field *field, const char *path, const toolbay_json *json, char *at) {
    int64_t integer;
    uint64_t natural;
    toolbay_string string;
    bool boolean;
    switch (field->kind) {
    case TOOLBAY_KIND_BOOLEAN:
        if (!toolbay_json_boolean(json, &boolean)) return wrong(path, "true or false");
        memcpy(at, &boolean, sizeof boolean);
        break;
    case TOOLBAY_KIND_INTEGER:
        if (!toolbay_json_integer(json, &integer) || !store_integer(at, field->size, integer)) {
            return wrong(path, "an integer of its size");
        }
        break;
    case TOOLBAY_KIND_NATURAL:
        if (!toolbay_json_natural(json, &natural) || !store_natural(at, field->size, natural)) {
            return wrong(path, "an integer of its size, and not negative");
        }
        break;
    case TOOLBAY_KIND_NUMBER:
        return decode_number(field, path, json, at);
    case TOOLBAY_KIND_TEXT:
        return decode_text(path, json, at);
    case TOOLBAY_KIND_STRING:
        if (!toolbay_json_string(json, &string)) return wrong(path, "a string");
        memcpy(at, &string, sizeof string);
        break;
    case TOOLBAY_KIND_RAW:
        string = toolbay_json_text(json);
        memcpy(at, &string, sizeof string);
        break;
    case TOOLBAY_KIND_OBJECT:
        return decode_object(field->type, path, json, at);
    }
    return (toolbay_string){0};
}

static toolbay_string decode_list(
    const toolbay_field *field, const char *path, const toolbay_json *json, char *at, char *count_at) {
    if (toolbay_json_kind_of(json) != TOOLBAY_JSON_ARRAY) return wrong(path, "an array");
    const size_t count = toolbay_json_count(json);
    char *items = calloc(count ? count : 1, field->size);
    if (!items) toolbay_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        const char *item = toolbay_format("%s[%zu]", path, i).data;
        const toolbay_string problem = decode_value(field, item, toolbay_json_at(json, i), items + i * field->size);
        if (problem.data) return problem;
    }
    memcpy(at, &items, sizeof items);
    memcpy(count_at, &count, sizeof count);
    return (toolbay_string){0};
}

static toolbay_string decode_field(
    const toolbay_field *field, const char *path, const toolbay_json *json, char *value) {
    char *at = value + field->offset;
    if (field->list) return decode_list(field, path, json, at, value + field->count_offset);
    if (field->nullable && toolbay_json_kind_of(json) == TOOLBAY_JSON_NULL) {
        /* Clears the value that the default may have set. */
        memset(at, 0, field->pointer ? sizeof(void *) : field->size);
        return (toolbay_string){0};
    }
    if (!field->pointer) return decode_value(field, path, json, at);
    char *pointed = toolbay_allocate(field->size);
    memcpy(at, &pointed, sizeof pointed);
    return decode_value(field, path, json, pointed);
}

static toolbay_string decode_object(
    const toolbay_type *type, const char *path, const toolbay_json *json, char *value) {
    if (toolbay_json_kind_of(json) != TOOLBAY_JSON_OBJECT) return wrong(*path ? path : "(root)", "an object");
    if (type->defaults) {
        memcpy(value, type->defaults, type->size);
    } else {
        memset(value, 0, type->size);
    }
    for (size_t i = 0; i < type->count; i++) {
        const toolbay_field *field = &type->fields[i];
        const char *inner = *path ? toolbay_format("%s.%s", path, field->name).data : field->name;
        const toolbay_json *member = toolbay_json_get(json, toolbay_str(field->name));
        if (!member) {
            if (field->optional || field->pointer) continue;
            return toolbay_format("`%s` is missing", inner);
        }
        const toolbay_string problem = decode_field(field, inner, member, value);
        if (problem.data) return problem;
    }
    return (toolbay_string){0};
}

toolbay_string toolbay_decode(const toolbay_type *type, const toolbay_json *json, void *value) {
    return decode_object(type, "", json, value);
}
