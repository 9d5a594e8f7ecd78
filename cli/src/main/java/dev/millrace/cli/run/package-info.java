/** Commands that run something: {@code train}, the roles, {@code evaluate} and {@code view}, with the live panel. */
@NullMarked
package dev.millrace.cli.run;

import org.jspecify.annotations.NullMarked;
