package dev.millrace.cli;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/** Of a class with options that several commands have: under which heading a usage message lists them. */
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.TYPE)
public @interface HelpHeading {
    /** The heading, without a colon. */
    String value();
}
