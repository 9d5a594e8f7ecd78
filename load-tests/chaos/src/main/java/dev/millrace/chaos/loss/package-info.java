/** What a log can lose: its end, what retention takes too early, and what an unclean leader never had. */
@NullMarked
package dev.millrace.chaos.loss;

import org.jspecify.annotations.NullMarked;
