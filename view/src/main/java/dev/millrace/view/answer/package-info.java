/** What the page is told, as JSON: each class answers one kind of question from the index, the log or the run's folder. A number that was not computed is null. */
@NullMarked
package dev.millrace.view.answer;

import org.jspecify.annotations.NullMarked;
