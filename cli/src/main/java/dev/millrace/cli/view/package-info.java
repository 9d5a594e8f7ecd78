/** {@code millrace view}: the page in the browser; what it shows is {@code dev.millrace.view}'s. */
@NullMarked
package dev.millrace.cli.view;

import org.jspecify.annotations.NullMarked;
