/**
 * An algorithm as one validated record: from rewards to the loss and the size of the step, and the named ones.
 */
@NullMarked
package dev.millrace.corrections.algorithm;

import org.jspecify.annotations.NullMarked;
