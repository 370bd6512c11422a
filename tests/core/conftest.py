"""What Hypothesis draws for the core is the same in every run."""

from tests.core import repeatable as repeatable
