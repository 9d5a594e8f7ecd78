/**
 * Ratios between the policies that touch a token, each under the names of the two it compares.
 */
@NullMarked
package dev.millrace.corrections.ratio;

import org.jspecify.annotations.NullMarked;
