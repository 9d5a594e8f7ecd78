/**
 * Makes a static site of the pages under {@code docs/}.
 *
 * <p>{@code docs/contents.md} names every page and puts them in order. A link of a page leads to another page, to a
 * heading, to a file of the repository, which is copied beside the site, or out of it. Any other link is an error, and
 * then nothing is written.
 */
@NullMarked
package dev.millrace.docs.site;

import org.jspecify.annotations.NullMarked;
