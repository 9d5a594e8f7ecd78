/** Generators whose records are refused: admission decides it, everybody else follows the topic {@code admission}. */
@NullMarked
package dev.millrace.log.quarantine;

import org.jspecify.annotations.NullMarked;
