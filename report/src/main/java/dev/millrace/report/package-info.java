/** One model of a report, and every way in which it is shown: text, Markdown, CSV, JSON, a page, a picture. */
@NullMarked
package dev.millrace.report;

import org.jspecify.annotations.NullMarked;
