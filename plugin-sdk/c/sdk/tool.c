/* Dispatches calls, by a tool's name and JSON, to the tool's function. */

#include <string.h>

#include "internal.h"

/* A plugin without TOOLBAY_PLUGIN offers no tools. */
__attribute__((weak)) const toolbay_tool *toolbay_plugin(size_t *count) {
    return *count = 0, NULL;
}

/* The type of the arguments of a tool without arguments. */
static const toolbay_type nothing = {0};

toolbay_string toolbay_input_schema(const toolbay_tool *tool) {
    if (tool->input_schema) return toolbay_str(tool->input_schema);
    return toolbay_schema(tool->arguments ? tool->arguments : &nothing, SCHEMA_OF_ARGUMENTS);
}

toolbay_string toolbay_output_schema(const toolbay_tool *tool) {
    if (tool->output_schema) return toolbay_str(tool->output_schema);
    if (tool->structured) return toolbay_schema(tool->structured, SCHEMA_OF_RESULT);
    return (toolbay_string){0};
}

static toolbay_result *call(const toolbay_tool *tool, toolbay_string arguments) {
    if (tool->call_json) return tool->call_json(tool->context, arguments);
    const toolbay_json *json = toolbay_json_parse(arguments);
    if (!json) return toolbay_invalid("the arguments are not JSON");
    const toolbay_type *type = tool->arguments ? tool->arguments : &nothing;
    void *value = toolbay_allocate(type->size);
    const toolbay_string wrong = toolbay_decode(type, json, value);
    return wrong.data ? toolbay_invalid("%s", wrong.data) : tool->call(value);
}

toolbay_result *toolbay_run(toolbay_string name, toolbay_string arguments) {
    size_t count;
    const toolbay_tool *tools = toolbay_plugin(&count);
    for (size_t i = 0; i < count; i++) {
        if (strlen(tools[i].name) != name.size || memcmp(tools[i].name, name.data, name.size) != 0) continue;
        toolbay_result *result = call(&tools[i], arguments);
        return result ? result : toolbay_output();
    }
    return toolbay_failed("there is no tool `%.*s`", (int)name.size, name.data);
}
