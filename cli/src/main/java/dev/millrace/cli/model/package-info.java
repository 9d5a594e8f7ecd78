/** {@code millrace model}: what a model directory is, and a run's model as one. */
@NullMarked
package dev.millrace.cli.model;

import org.jspecify.annotations.NullMarked;
