/** What goes out: a version, its training-log record and the batch's offset, in one transaction. */
@NullMarked
package dev.millrace.learner.commit;

import org.jspecify.annotations.NullMarked;
