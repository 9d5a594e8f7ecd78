/** What goes out: a version, its training-log record and the batch's offset, in one transaction. */
package dev.millrace.learner.commit;
