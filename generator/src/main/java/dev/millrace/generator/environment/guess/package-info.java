/** The multi-turn task: a game in which the environment answers, and its answers are context and never trained on. */
@NullMarked
package dev.millrace.generator.environment.guess;

import org.jspecify.annotations.NullMarked;
