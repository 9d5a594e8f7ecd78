/** {@code evaluate}: versions of a run on held-out prompts, by hand, as they were recorded, or as a role. */
@NullMarked
package dev.millrace.cli.evaluate;

import org.jspecify.annotations.NullMarked;
