#undef NDEBUG
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "toolbay/toolbay_test.h"

static void greets(void) {
    assert(strcmp(toolbay_test_call("{{ident}}_greet", "{\"name\": \"Ada\"}").text, "Hello, Ada.") == 0);
    assert(strcmp(toolbay_test_call("{{ident}}_greet", "{\"name\": \"Ada\", \"excited\": true}").text, "HELLO, ADA!") == 0);
}

static void refuses_a_blank_name(void) {
    const toolbay_answer answer = toolbay_test_call("{{ident}}_greet", "{\"name\": \" \\t\"}");
    assert(answer.invalid_arguments);
    assert(strcmp(answer.text, "name is empty: say who to greet") == 0);
}

static void counts(void) {
    const toolbay_answer answer = toolbay_test_call("{{ident}}_count", "{\"text\": \"na\u00efve caf\u00e9\\n\\u65e5\\u672c\"}");
    assert(strcmp(answer.structured, "{\"characters\":13,\"words\":3,\"lines\":2}") == 0);
}

static void counts_nothing(void) {
    const toolbay_answer answer = toolbay_test_call("{{ident}}_count", "{\"text\": \"\"}");
    assert(strcmp(answer.structured, "{\"characters\":0,\"words\":0,\"lines\":0}") == 0);
}

int main(void) {
    greets();
    refuses_a_blank_name();
    counts();
    counts_nothing();
    puts("4 passed, 0 failed");
}
