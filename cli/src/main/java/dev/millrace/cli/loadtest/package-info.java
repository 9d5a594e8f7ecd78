/** {@code millrace load-test}: load tests and their reports; what is measured is in the module load-tests. */
@NullMarked
package dev.millrace.cli.loadtest;

import org.jspecify.annotations.NullMarked;
