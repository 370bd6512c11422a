"""What does a row of somebody's table mean? Numbers, chips, models and software, however they are spelled."""
