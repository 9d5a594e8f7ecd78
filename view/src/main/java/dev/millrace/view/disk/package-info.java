/**
 * A run that has ended, read from the files of its own broker without starting it: at once, and without holding the folder, so that the run may go on at
 * any moment. What is read is what a consumer of committed records would read.
 */
@NullMarked
package dev.millrace.view.disk;

import org.jspecify.annotations.NullMarked;
