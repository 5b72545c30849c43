/* The names of the kinds of content blocks. */

#include "internal.h"

/* A kind without a case is an error, regardless of the project's compiler flags.
 * */
#pragma GCC diagnostic error "-Wswitch"

block_names toolbay_block_names(toolbay_block_kind kind) {
    switch (kind) {
    case TOOLBAY_BLOCK_TEXT: return (block_names){"text", "text"};
    case TOOLBAY_BLOCK_IMAGE: return (block_names){"image", "image"};
    case TOOLBAY_BLOCK_AUDIO: return (block_names){"audio", "audio"};
    case TOOLBAY_BLOCK_LINK: return (block_names){"resource-link", "resource_link"};
    case TOOLBAY_BLOCK_RESOURCE: return (block_names){"embedded-resource", "resource"};
    }
    toolbay_panic("there is no block of kind %d", (int)kind);
}
