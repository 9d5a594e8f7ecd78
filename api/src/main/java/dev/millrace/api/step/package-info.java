/** What somebody implements who wants to be told of the learner's steps as they are made. */
@NullMarked
package dev.millrace.api.step;

import org.jspecify.annotations.NullMarked;
