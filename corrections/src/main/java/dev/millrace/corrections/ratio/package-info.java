/**
 * Ratios between the policies that touch a token, each under the names of the two it compares.
 */
package dev.millrace.corrections.ratio;
