/** What the engine does on this machine: prompts, tokens, scores, gradients, updates and versions in a second, and whether its passes agree. */
@NullMarked
package dev.millrace.workloads.engine;

import org.jspecify.annotations.NullMarked;
