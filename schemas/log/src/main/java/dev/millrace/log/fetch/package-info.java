/** Reading records of the log again, by their place on it. */
package dev.millrace.log.fetch;
