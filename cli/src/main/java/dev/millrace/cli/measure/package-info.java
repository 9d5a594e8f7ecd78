/** Commands that measure: {@code load-test}, {@code experiment} and {@code conformance}. */
@NullMarked
package dev.millrace.cli.measure;

import org.jspecify.annotations.NullMarked;
