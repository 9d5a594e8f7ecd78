/** The topology's meters. */
package dev.millrace.topology.meters;
