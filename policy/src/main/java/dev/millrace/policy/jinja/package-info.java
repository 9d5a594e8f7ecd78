/**
 * Jinja as chat templates use it, with Python's values: what {@code transformers} renders with Jinja 3.1 in its immutable sandbox
 * ({@code trim_blocks}, {@code lstrip_blocks}, loop controls, its {@code tojson}), rendered to the same text or refused
 * by name. It has no access to this process, and steps, depth and sizes are bounded.
 */
@NullMarked
package dev.millrace.policy.jinja;

import org.jspecify.annotations.NullMarked;
