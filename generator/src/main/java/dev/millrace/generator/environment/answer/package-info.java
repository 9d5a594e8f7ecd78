/** Single-turn tasks whose right answer is known with the prompt. */
@NullMarked
package dev.millrace.generator.environment.answer;

import org.jspecify.annotations.NullMarked;
