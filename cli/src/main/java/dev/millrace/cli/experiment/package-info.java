/** {@code millrace experiment}: many short runs that compare corrections. */
@NullMarked
package dev.millrace.cli.experiment;

import org.jspecify.annotations.NullMarked;
