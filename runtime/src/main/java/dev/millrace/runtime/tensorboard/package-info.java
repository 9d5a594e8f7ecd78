/**
 * TensorBoard's event files, written with every step: its format of records, its messages, and how a run that goes on continues
 * them.
 */
@NullMarked
package dev.millrace.runtime.tensorboard;

import org.jspecify.annotations.NullMarked;
