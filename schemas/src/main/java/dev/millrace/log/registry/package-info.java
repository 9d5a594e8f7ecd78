/**
 * Schemas on the log itself: a compacted topic in Confluent's layout, and its read side over HTTP for stock clients.
 *
 * <p>An id is given once and means the same for ever. Writers exclude each other by transactions; readers need the right to
 * read the topic and nothing else.
 */
@NullMarked
package dev.millrace.log.registry;

import org.jspecify.annotations.NullMarked;
