package dev.millrace.api.plugin;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/** Documents a setting of a plug-in's kind for the reference: meaning, unit and bounds. */
@Documented
@Target(ElementType.RECORD_COMPONENT)
@Retention(RetentionPolicy.RUNTIME)
public @interface Meaning {
    /** One sentence or a part of one, in plain text. */
    String value();
}
