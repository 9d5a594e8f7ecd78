/** Single-turn tasks whose right answer is known with the prompt. */
package dev.millrace.generator.environment.answer;
